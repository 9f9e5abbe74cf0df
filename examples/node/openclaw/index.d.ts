// The types of OpenClaw's specification, and what was added to them.

/** A `ManualClock` of the package, for tests. */
type Clock = { now(): number };

export type RateLimitIdentity = {
  channel: string;
  accountId: string;
  senderId: string;
  sessionKey?: string;
};
export function buildRateLimitKey(identity: RateLimitIdentity): string;

export type ThrottleResponseMode = 'silent' | 'notify-once' | 'notify-always';

export type ChannelLimits = {
  maxMessagesPerMinute?: number;
  maxMessagesPerHour?: number;
  burstLimit?: number;
};

export type MessageRateLimitConfig = ChannelLimits & {
  enabled?: boolean;
  cooldownMs?: number;
  exemptSenders?: string[];
  exemptChannels?: string[];
  pruneIntervalMs?: number;
  perChannel?: Record<string, ChannelLimits>;
  /** Added: its text wants the mode "configurable per channel". */
  throttleResponse?: Record<string, ThrottleResponseMode>;
};

export type MessageRateLimitResult = {
  allowed: boolean;
  remaining: number;
  retryAfterMs?: number;
  reason?: 'burst' | 'per-minute' | 'per-hour' | 'cooldown';
  budget?: CostBudgetStatus;
  /** Added: whether to notify the sender. */
  notify?: boolean;
};

export type SenderRateLimitStats = {
  messagesLastMinute: number;
  messagesLastHour: number;
  burstCount: number;
  cooldownUntil?: number;
  lastMessageAt?: number;
};

export type MessageRateLimiter = {
  check(key: string): MessageRateLimitResult;
  record(key: string): void;
  /** Added: takes a record back, for a dispatch that failed. */
  unrecord(key: string): void;
  reset(key: string): void;
  resetAll(): void;
  size(): number;
  prune(): void;
  dispose(): void;
  getStats(key: string): SenderRateLimitStats | null;
};

export function createMessageRateLimiter(
  config?: MessageRateLimitConfig,
  more?: { budget?: CostBudgetTracker; clock?: Clock; now?: () => number },
): MessageRateLimiter;

export type CostBudgetConfig = {
  enabled?: boolean;
  maxDailyCostCents?: number;
  maxPerMessageCostCents?: number;
  resetHourUtc?: number;
};

export type CostBudgetStatus = {
  dailySpentCents: number;
  dailyRemainingCents: number;
  overBudget: boolean;
};

export type CostBudgetTracker = {
  recordCost(key: string, costCents: number): void;
  checkBudget(key: string): CostBudgetStatus;
  reset(key: string): void;
  dispose(): void;
};

export function createCostBudgetTracker(
  config?: CostBudgetConfig,
  more?: { clock?: Clock },
): CostBudgetTracker;

export type Finding = { checkId: string; severity: string; message: string };
export function auditRateLimits(config?: {
  messageRateLimit?: MessageRateLimitConfig;
  costBudget?: CostBudgetConfig;
}): Finding[];
