'use strict';

// Where OpenClaw asks: before a message of any channel is dispatched, WebSocket chat included.

const { buildRateLimitKey } = require('./index.js');

/** How each channel asks a sender to slow down, if it notifies at all. */
const THROTTLE_REPLY = {
  telegram: () => ({ text: 'Please slow down' }),
  discord: () => ({ text: 'Rate limited', ephemeral: true }),
  slack: () => ({ text: 'Rate limited', ephemeral: true }),
  webchat: ({ retryAfterMs }) => ({ error: 'rate_limited', retryAfterMs }),
};
const OTHERS = () => ({ text: 'Rate limited' });

/**
 * Makes `dispatchInboundMessage`. `dispatch` is the pipeline behind it, and `ctx.reply` answers the
 * sender.
 */
function createDispatcher({ rateLimiter, dispatch, log = () => {} }) {
  return async function dispatchInboundMessage(ctx) {
    const key = buildRateLimitKey({
      channel: ctx.channel,
      accountId: ctx.accountId,
      senderId: ctx.sender,
    });
    const result = rateLimiter.check(key);
    if (!result.allowed) {
      log(`Rate limited ${key}: ${result.reason}, retry after ${result.retryAfterMs}ms`);
      if (result.notify) ctx.reply((THROTTLE_REPLY[ctx.channel] ?? OTHERS)(result));
      return { status: 'rate-limited', retryAfterMs: result.retryAfterMs };
    }
    if (result.budget?.overBudget) return { status: 'over-budget' };
    // Recorded at once, and taken back if the dispatch fails. Messages on their way count as well:
    // a sender that writes faster than the answers come would bypass every limit otherwise.
    rateLimiter.record(key);
    await dispatch(ctx).catch((error) => {
      rateLimiter.unrecord(key);
      throw error;
    });
    return { status: 'dispatched' };
  };
}

/** Gateway chat: each WebSocket is a session of the channel webchat. */
function serveChat(server, dispatchInboundMessage) {
  server.on('connection', (socket, request) => {
    const sender = new URL(request.url, 'ws://chat').searchParams.get('session');
    const reply = (answer) => socket.send(JSON.stringify(answer));
    socket.on('message', (data) => {
      dispatchInboundMessage({
        channel: 'webchat',
        accountId: 'default',
        sender,
        text: String(data),
        reply,
      }).catch(() => reply({ error: 'failed' }));
    });
  });
}

module.exports = { createDispatcher, serveChat };
