'use strict';

// A guard for the messages of WebSockets (`ws`). The caller asks it after a message is read and
// before it is handled.

const { NO_KEY, callBy, checkRule, clientBy } = require('./http.js');

const INTERNAL_ERROR = 1011;
const MOST_REASON_BYTES = 120;

function guard(rule, options = {}) {
  checkRule(rule);
  const [clientOf, callOf] = [clientBy(options), callBy(options)];
  const { peer = (request) => request.socket.remoteAddress, describe } = options;
  const send = (socket, message, frame) =>
    socket.send(JSON.stringify({ ...frame, ...describe?.(message) }));
  return function pass(socket, request, message) {
    const address = clientOf(peer(request), request.headers['x-forwarded-for']);
    const call = callOf(message, address, request);
    if (!call) return close(socket, NO_KEY);
    let decision;
    try {
      decision = rule.hit(...call);
    } catch (error) {
      return close(socket, error.message);
    }
    if (decision.warning) send(socket, message, warning(decision));
    if (decision.notify) send(socket, message, refusal(decision));
    return decision.allowed;
  };
}

/** Nothing passes unjudged. */
function close(socket, reason) {
  socket.close(INTERNAL_ERROR, Buffer.from(reason).subarray(0, MOST_REASON_BYTES).toString());
  return false;
}

const warning = ({ remaining, limit }) => ({
  type: 'rate_limit_warning',
  remaining,
  capacity: limit,
});
const refusal = ({ retryAfterMs }) => ({ type: 'rate_limited', retry_after_ms: retryAfterMs });

module.exports = { guard };
