'use strict';

// Middleware for Express and whatever else takes `(req, res, next)`: Connect, Polka, `node:http`.

const { builtin } = require('../lib/builtin.js');
const { gate } = require('./http.js');

const { finished } = builtin('node:stream', () => require('node:stream'));

const where = {
  peer: (req) => req.socket.remoteAddress,
  header: (req, name) => req.headers[name],
};

function rateLimit(rule, options) {
  const judge = gate(rule, options, where);
  return function rateLimit(req, res, next) {
    const { headers, status, body, permit } = judge(req);
    for (const name in headers) res.setHeader(name, headers[name]);
    if (status) {
      res.statusCode = status;
      res.end(body);
      return;
    }
    if (permit) finished(res, () => permit.release());
    next();
  };
}

module.exports = { rateLimit };
