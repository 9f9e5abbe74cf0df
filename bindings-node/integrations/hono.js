'use strict';

// Middleware for Hono, on Node by `@hono/node-server`.

const { gate } = require('./http.js');

const where = {
  peer: (c) => c.env?.incoming?.socket?.remoteAddress,
  header: (c, name) => c.req.header(name),
};

function rateLimit(rule, options) {
  const judge = gate(rule, options, where);
  return async function rateLimit(c, next) {
    const { headers, status, body, permit } = judge(c);
    if (status) return c.body(body, status, headers);
    try {
      await next();
    } finally {
      permit?.release();
    }
    // What a handler or a layer closer to it has set stays: it knows more about this answer.
    for (const name in headers) if (!c.res.headers.has(name)) c.header(name, headers[name]);
  };
}

module.exports = { rateLimit };
