'use strict';

// OpenClaw's settings as a policy. All that it decides about messages and costs is in here.
//
// Its test plan sends 25 messages at once and wants 20 of them dispatched, though its default burst
// limit stops the sixth. Both are meant: set `burstLimit` to 20 or more for the first.

/** What its senders get to know when they are refused, by channel; on all others nothing. */
const THROTTLE_RESPONSE = {
  telegram: 'notify-once',
  discord: 'notify-always',
  slack: 'notify-always',
  webchat: 'notify-always',
};
const NOTIFY = { silent: 'silent', 'notify-once': 'once', 'notify-always': 'always' };

/** Only what is set: a limit that a channel doesn't name stays the default. */
const changes = ({ burstLimit, maxMessagesPerMinute, maxMessagesPerHour }) =>
  Object.fromEntries(
    Object.entries({
      burst: burstLimit,
      'per-minute': maxMessagesPerMinute,
      'per-hour': maxMessagesPerHour,
    })
      .filter(([, max]) => max !== undefined)
      .map(([name, max]) => [name, { max }]),
  );

function policyOf(messages = {}, costs = {}) {
  const {
    enabled = true,
    cooldownMs = 60_000,
    exemptSenders = [],
    exemptChannels = [],
    perChannel = {},
  } = messages;
  const { burstLimit = 5, maxMessagesPerMinute = 20, maxMessagesPerHour = 200 } = messages;
  const responses = { ...THROTTLE_RESPONSE, ...messages.throttleResponse };
  const channels = new Set([...Object.keys(responses), ...Object.keys(perChannel)]);
  return {
    version: 1,
    rules: {
      messages: {
        capacity: 10_000,
        key: ['channel', 'account', 'sender'],
        mode: enabled ? 'enforce' : 'off',
        limits: {
          burst: { max: burstLimit, per: '10s', algorithm: 'window', cooldown: `${cooldownMs}ms` },
          'per-minute': { max: maxMessagesPerMinute, per: '1m', algorithm: 'window' },
          'per-hour': { max: maxMessagesPerHour, per: '1h', algorithm: 'window' },
        },
        notify: 'silent',
        when: [...channels].map((channel) => ({
          match: { channel },
          notify: NOTIFY[responses[channel] ?? 'silent'],
          limits: changes(perChannel[channel] ?? {}),
        })),
        exempt: [
          ...exemptSenders.map((sender) => ({ sender })),
          ...exemptChannels.map((channel) => (channel === '*' ? {} : { channel })),
        ],
        ...(costs.enabled && { budget: budgetOf(costs) }),
      },
    },
  };
}

const budgetOf = ({ maxDailyCostCents = 500, maxPerMessageCostCents = 100, resetHourUtc = 0 }) => ({
  daily: maxDailyCostCents,
  per_hit: maxPerMessageCostCents,
  reset_hour_utc: resetHourUtc,
  unit: 'cents',
});

module.exports = { policyOf };
