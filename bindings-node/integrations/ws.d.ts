import type { IncomingMessage } from 'node:http';
import type { Limited, Options } from './http.js';

/** What a guard needs of a `WebSocket`. */
export interface Socket {
  send(frame: string): void;
  close(code: number, reason: string): void;
}

export interface GuardOptions<Message> extends Options<Message, IncomingMessage> {
  /** Fields to add to a message's frame for the client. */
  describe?: (message: Message) => Record<string, unknown>;
}

/**
 * Makes a function that says whether a message may be handled. It sends the client frames of JSON.
 *
 * - A warning of the rule is `{ type: 'rate_limit_warning', remaining, capacity }`.
 * - A denial with `notify` is `{ type: 'rate_limited', retry_after_ms }`.
 * - A message that can't be judged closes the socket with 1011.
 *
 * ```js
 * const pass = guard(new Limiter('60/min', { warn_at: 0.8 }))
 * server.on('connection', (socket, request) => {
 *   socket.on('message', (data) => {
 *     const message = JSON.parse(data)
 *     if (pass(socket, request, message)) handle(message)
 *   })
 * })
 * ```
 */
export function guard<Message = unknown>(
  rule: Limited,
  options?: GuardOptions<Message>,
): (socket: Socket, request: IncomingMessage, message: Message) => boolean;
