'use strict';

// A plugin for Fastify: one hit for each request of the instance that it is registered on.

const { builtin } = require('../lib/builtin.js');
const { gate } = require('./http.js');

const { finished } = builtin('node:stream', () => require('node:stream'));

const where = {
  peer: (request) => request.raw.socket.remoteAddress,
  header: (request, name) => request.headers[name],
};

// Async, so that Fastify reports what it throws; the process would end otherwise.
async function rateLimit(fastify, { rule, hook = 'onRequest', ...options }) {
  const judge = gate(rule, options, where);
  fastify.addHook(hook, (request, reply, next) => {
    const { headers, status, body, permit } = judge(request);
    reply.headers(headers);
    // As bytes: Fastify would add a charset to the type of a text.
    if (status) return void reply.code(status).send(Buffer.from(body));
    if (permit) finished(reply.raw, () => permit.release());
    next();
  });
}

// What `fastify-plugin` does: the hook is the parent's, not that of a scope of its own.
rateLimit[Symbol.for('skip-override')] = true;
rateLimit[Symbol.for('fastify.display-name')] = 'tidegate';

module.exports = { rateLimit };
