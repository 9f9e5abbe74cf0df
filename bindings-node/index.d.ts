/// <reference lib="esnext.disposable" />

/**
 * Rate limits for chat bots, agent hubs and gateways.
 *
 * A {@link Limiter} is a policy at work: rules, each a named set of limits that are taken together,
 * all or nothing. State lives in a table of fixed size, in memory or in files that all processes of
 * a host share. Times are milliseconds throughout.
 */

/** A key of one part, or a part of one. */
export type KeyPart = string | Uint8Array | number | bigint;

/**
 * What is limited: text, bytes, a whole number, or a list of parts. Keys are compared as bytes:
 * `'x'`, its bytes and `['x']` are one key, and a number is its decimal digits. A number is a safe
 * integer, a bigint has 64 bits. A string with half of a surrogate pair is refused.
 */
export type Key = KeyPart | readonly KeyPart[];

/**
 * What a rule may read beside the key: `role`, `tier`, `ip`. Those that no rule names are
 * ignored. Names that an operation takes (`cost`, `max`, `timeoutMs`, `signal`, `estimate`,
 * `amount`, `forMs`, `by`, `reason`) are never attributes. An operation that does not take one of
 * them throws a TypeError for it.
 */
export interface Attributes {
  readonly [name: string]: string | number | boolean | null | undefined;
}

/**
 * What beside the key a call has: another `max` for this call (of a rule with one limit), and
 * attributes.
 */
export type CallOptions = Attributes & {
  /** Another `max` for this call, of a rule with one limit. */
  readonly max?: number | undefined;
};

/** As {@link CallOptions}, with what the call costs. */
export type CostOptions = CallOptions & {
  /** What the call spends: a whole number, 1 unless said. */
  readonly cost?: number | undefined;
};

/** What a call costs, or that and more. */
export type Cost = number | CostOptions;

/** By whom, and why, a run-time change is made. */
export interface UndoOptions {
  /** Who makes it; at most 200 bytes. */
  readonly by?: string | null | undefined;
  /** Why; at most 1,000 bytes. */
  readonly reason?: string | null | undefined;
}

/** For how long, by whom, and why a run-time change is made. */
export interface ChangeOptions extends UndoOptions {
  /**
   * After so many milliseconds (1 to those of 36,600 days) the change ends by itself. What it
   * replaced is not restored. Unless said, it stands until it is taken back.
   */
  readonly forMs?: number | null | undefined;
}

/** As {@link ChangeOptions}, with attributes: for a rule whose key they complete (`classify`). */
export type BlockOptions = Attributes &
  ChangeOptions & { readonly for?: undefined; readonly cost?: undefined; readonly max?: undefined };

/** As {@link UndoOptions}, with attributes: for a rule whose key they complete (`classify`). */
export type UnblockOptions = Attributes &
  UndoOptions & { readonly forMs?: undefined; readonly cost?: undefined; readonly max?: undefined };

/** How to wait. */
export type AcquireOptions = {
  /** What the call spends: a whole number, 1 unless said. */
  readonly cost?: number | undefined;
  /** Another `max` for this call, of a rule with one limit. */
  readonly max?: number | undefined;
  /** How long to wait at most; endlessly unless said. */
  readonly timeoutMs?: number | undefined;
  /** Ends the waiting; nothing is spent, and the promise is rejected with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Attributes. */
  readonly [name: string]: string | number | boolean | null | undefined | AbortSignal;
};

/** How to wait for a permit or a reservation. */
export type WaitOptions = Omit<AcquireOptions, 'cost'> & { readonly cost?: undefined };

/** Which header fields: `X-RateLimit-…`, those of the IETF's draft, or both. */
export type HeaderStyle = 'legacy' | 'ietf' | 'both';

/** Plain JSON data. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** How a decision left one limit. */
export interface LimitLeft {
  /** The limit's name. */
  readonly name: string;
  /** A bucket's size, else its `max`. */
  readonly max: number;
  /** What is left of it, rounded down. */
  readonly remaining: number;
  /** Until all of it is there again. */
  readonly resetAfterMs: number;
  /** Until there is more than `remaining`: 0 if all of it is there, null if there never is more. */
  readonly moreAfterMs: number | null;
}

interface DecisionFields {
  /** The rule that was hit. */
  readonly rule: string;
  /**
   * The size of the limit with the least left, or of the one that denies; null for exempt and off.
   */
  readonly limit: number | null;
  /** What is left of it, rounded down. */
  readonly remaining: number | null;
  /** Until the key has its full quota again, the longest over its limits. */
  readonly resetAfterMs: number;
  /**
   * How each limit was left, in declared order. The list is made anew each time it is read: a hit
   * does not pay for it. `{ ...decision }` and `JSON.stringify(decision)` leave it out.
   */
  readonly limits: readonly LimitLeft[];
  /** In shadow mode, the reason it would have been denied for. */
  readonly wouldDeny: string | null;
  /** The decision as header fields; `both` styles unless said. */
  headers(style?: HeaderStyle): Record<string, string>;
}

/** The call may go on. */
export interface Allowed extends DecisionFields {
  readonly allowed: true;
  /** Why it was not counted, if it was not. */
  readonly reason: 'exempt' | 'off' | null;
  readonly retryAfterMs: 0;
  /** It left less than the rule's `warnAt` wants. */
  readonly warning: boolean;
  readonly alert: boolean;
  readonly notify: boolean;
  readonly attach: null;
}

/** The call may not go on. */
export interface Denied extends DecisionFields {
  readonly allowed: false;
  /**
   * The denying limit's name, or `blocked`, `cooldown`, `backoff`, `budget`, `cost`, `full` or
   * `outage`.
   */
  readonly reason: string;
  /** Until the same hit would pass; null where waiting never helps. */
  readonly retryAfterMs: number | null;
  readonly warning: boolean;
  /** This denial was the one that reached the rule's alert. */
  readonly alert: boolean;
  /** The sender should be notified. */
  readonly notify: boolean;
  /** What the rule hands back with a denial. */
  readonly attach: Json;
}

/** The answer to a hit: ask `allowed`, and the rest follows. */
export type Decision = Allowed | Denied;
/** For `instanceof`; decisions come from rules. */
export declare const Decision: abstract new (...none: never) => Decision;

/** What a key has used after a {@link Rule.record}: of the limit with the least left. */
export interface Recorded {
  /** Units that are gone; more than `limit` if more was recorded than allowed. */
  readonly used: number;
  readonly limit: number;
  readonly remaining: number;
  readonly resetAfterMs: number;
}

/** How a key stands with its budget of the day. */
export interface Budget {
  readonly spent: number;
  readonly remaining: number;
  /** Nothing is left. */
  readonly over: boolean;
  /** This amount was more than one hit should cost. */
  readonly overPerHit: boolean;
  readonly resetAfterMs: number;
}

/** What is known of a key. */
export interface Stats {
  /** By the limits' names. */
  readonly limits: Record<
    string,
    { used: number; max: number; remaining: number; resetAfterMs: number }
  >;
  readonly cooldownLeftMs: number;
  readonly violations: number;
  /** Since its last allowed hit, where the rule keeps that: one with a window does. */
  readonly lastAllowedMs: number | null;
  readonly budget: Budget | null;
  /** What is known of its block, if it is blocked. */
  readonly blocked: BlockedKey | null;
}

/** A key that is blocked. */
export interface BlockedKey {
  /** Its parts: text, or bytes that are none. */
  readonly key: (string | Uint8Array)[];
  /** When the block ends, in ms since the start of 1970; null if it does not. */
  readonly untilMs: number | null;
  /** Who blocked it. */
  readonly by: string | null;
  /** Why. */
  readonly reason: string | null;
}

/** Whether what a rule denies is denied, only reported, or not even counted. */
export type Mode = 'enforce' | 'shadow' | 'off';

/**
 * Whom a run-time change is about: a key by its parts (text, or bytes that are none), or the calls
 * that match.
 */
export type Target =
  | { readonly key: (string | Uint8Array)[] }
  | { readonly match: { [field: string]: string[] } };

/** A run-time change as it was made. */
export interface Change {
  /** Counts the changes of a store, from 1 on. */
  readonly number: number;
  /** When it was made, in ms since the start of 1970. */
  readonly atMs: number;
  readonly rule: string;
  readonly op:
    | 'set_override'
    | 'clear_override'
    | 'set_default'
    | 'add_exempt'
    | 'remove_exempt'
    | 'set_exempts'
    | 'set_mode'
    | 'clear_mode'
    | 'block'
    | 'unblock';
  /** Null where it is about all calls. */
  readonly target: Target | null;
  /**
   * What stood before: limits (periods in ms), a list of exemptions, or a mode. Of one exemption
   * and of a block, whether it stood; when all blocks were ended, how many there were. Null for
   * none.
   */
  readonly before: Json;
  /** What stands since. */
  readonly after: Json;
  /** When it ends by itself, in ms since the start of 1970; null if it does not. */
  readonly untilMs: number | null;
  readonly by: string | null;
  readonly reason: string | null;
}

/** The last run-time changes, the oldest first, and where to go on. */
export interface Changes {
  /** Those after the number asked for: at least those of the last 256 of the store. */
  readonly changes: Change[];
  /** What to ask for the changes after these with. */
  readonly next: number;
  /** How many changes of the store after the number asked for are kept no more. */
  readonly missed: number;
}

/** How often a key was seen. */
export interface NamedCount {
  readonly key: string[];
  readonly count: number;
}

/** What happened with a rule so far. */
export interface Metrics {
  readonly rule: string;
  readonly allowed: number;
  readonly warned: number;
  /** By reason. */
  readonly denied: Record<string, number>;
  readonly shadowed: number;
  readonly exempt: number;
  readonly off: number;
  readonly alerts: number;
  readonly evictions: number;
  readonly full: number;
  readonly overflow: number;
  readonly classifyDefaults: number;
  readonly capacity: number;
  readonly keys: number;
  /** Bytes of all its tables, fixed from the start. */
  readonly bytes: number;
  /** Another table took the place of this rule's in a file store, or it was removed. */
  readonly retired: boolean;
  readonly topOffenders: NamedCount[];
  readonly heaviest: NamedCount[];
}

/** A denial, or an alert; or that the rule's table is retired (reason `retired`, no key). */
export interface Event {
  /** Grows by one with each event of the limiter. */
  readonly number: number;
  readonly rule: string;
  readonly key: string[];
  readonly reason: string;
  readonly alert: boolean;
  /** Since the start of 1970. */
  readonly atMs: number;
}

/** The last events, and where to go on. */
export interface Events {
  readonly events: Event[];
  /** What to ask for the events after these with: one text for all rules of the limiter. */
  readonly next: string;
  /**
   * How many were overwritten by later ones before they were read. Of one rule among several, it is
   * at most so many.
   */
  readonly missed: number;
}

/** Something about a policy that may not be meant. */
export interface Finding {
  readonly id: string;
  readonly severity: 'info' | 'warn';
  readonly path: string;
  readonly message: string;
}

/** What a table file of a rule holds. */
export interface Inspected {
  readonly rule: string;
  readonly format: number;
  readonly limits: { name: string; algorithm: string; [field: string]: Json }[];
  readonly capacity: number;
  readonly keys: number;
  readonly penalised: number;
  readonly spending: number;
  readonly overrides: number;
  readonly bytes: number;
  readonly retired: boolean;
  readonly topOffenders: NamedCount[];
}

/** A time: milliseconds, or a text such as `'60s'`. */
export type Period = number | string;

/** How a limit counts. */
export type Algorithm = 'bucket' | 'window' | 'counter' | 'fixed' | 'concurrent';

/** What a limit takes of each hit: its cost, or 1 if that is not 0. */
export type Counts = 'cost' | 'hits';

/**
 * A limit as a map; as a text it is `'20/min'`, `'100/s burst 20'`, `'200/h window'`, `'5
 * concurrent lease 30s'`.
 */
export interface LimitMap {
  name?: string;
  max: number;
  per?: Period;
  burst?: number;
  algorithm?: Algorithm;
  lease?: Period;
  cooldown?: Period;
  scope?: string[];
  /** What it takes of each hit: its cost (default), or 1. Not for a concurrent limit. */
  counts?: Counts;
}

/** Limits: a text (a comma separates several), a list, or a map by names. */
export type Limits =
  | string
  | readonly (string | LimitMap)[]
  | { readonly [name: string]: string | LimitMap };

/** What changes of a rule's limits, by their names; a text for a rule with one limit. */
export type LimitPatches =
  | string
  | {
      readonly [name: string]:
        | string
        | {
            max?: number;
            per?: Period;
            burst?: number;
            lease?: Period;
            cooldown?: Period;
            /** The one that the limit has; another is refused. */
            algorithm?: Algorithm;
            /** The one that the limit has; another is refused. */
            scope?: readonly string[];
            /** What the limit has; anything else is refused. */
            counts?: Counts;
          };
    };

/** Which calls: those whose parts and attributes have these values. */
export type Match = { readonly [field: string]: string | readonly string[] };

export interface Backoff {
  steps: Period[];
  quiet?: Period;
  round?: Period;
  enforce?: boolean;
}

export interface Alert {
  violations: number;
  within: Period;
}

/** What a rule does beside its limits. Everything is off unless set. */
export interface RuleOptions {
  /** Names of the key's parts, in order. */
  key?: string[];
  /** An allowed hit that leaves less than `1 - warnAt` of a limit sets `warning`. */
  warnAt?: number;
  /** After a denial the whole key is refused for so long. */
  cooldown?: Period;
  backoff?: Backoff;
  alert?: Alert;
  /** Whether the caller should notify the sender. */
  notify?: 'silent' | 'once' | 'always';
  /** The parts that penalties are kept for; all unless set. */
  penaltyScope?: string[];
  budget?: { daily: number; perHit?: number; resetHourUtc?: number; unit?: string };
  classify?: { from: string; to: string; map: Record<string, string>; default: string };
  /** Other values for calls that match. */
  when?: {
    match: Match;
    limits?: LimitPatches;
    warnAt?: number;
    cooldown?: Period;
    backoff?: Backoff;
    alert?: Alert;
    notify?: 'silent' | 'once' | 'always';
    mode?: Mode;
    attach?: Json;
  }[];
  /** Calls that are always allowed, uncounted. */
  exempt?: Match[];
  mode?: Mode;
  /** Free data handed back with a denial. */
  attach?: Json;
  /** The largest `max` that run-time changes may ask of a window. */
  ceiling?: number;
}

/** What a limiter is made with; what is set wins over the policy. */
export interface LimiterOptions {
  /**
   * `memory`, `memory:NAME` (one for all limiters of the process that name it), or `file:PATH`
   * (one for the host).
   */
  store?: string | undefined;
  /**
   * Keys that a rule may hold live. Unless set, what fits into its share of `memory`: 1,024 to
   * 65,536.
   */
  capacity?: number | undefined;
  /** What a new key gets when the table is full. */
  onFull?: 'overflow' | 'deny' | 'allow' | undefined;
  /** Where time comes from. */
  clock?: ManualClock | undefined;
  /**
   * Makes tables of a file store anew that don't fit the policy or can't be read. Their counts are
   * lost.
   */
  recreate?: boolean | undefined;
  /** Share the folder of a file store with its group: mode 0770, files 0660. */
  group?: boolean | undefined;
  /** What all tables together may take: bytes, or a text such as `'64MB'`. 256 MB unless set. */
  memory?: number | string | undefined;
}

/** A policy as a file has it: `version`, `rules` and so on, in the file's spelling. */
export interface Policy {
  version: 1;
  store?: string;
  capacity?: number;
  on_full?: 'overflow' | 'deny' | 'allow';
  memory?: number | string;
  group?: boolean;
  fallback?: string;
  headers?: { limit?: string; remaining?: string; reset?: string };
  rules: { [name: string]: { limits: Json; [option: string]: Json } };
  [field: string]: unknown;
}

/** One step of the judgement. */
export interface Step {
  readonly step:
    'mode' | 'exempt' | 'blocked' | 'cost' | 'budget' | 'cooldown' | 'backoff' | 'limit';
  /**
   * `none`: the rule has no such thing. `allow`: uncounted, and the last step. `deny`: the first
   * that does is the decision's reason, and the rest is listed too.
   */
  readonly outcome: 'none' | 'pass' | 'allow' | 'deny';
  /** The limit that it is about. */
  readonly limit: string | null;
  /**
   * What it goes by: the mode, the exemption that matches, why a key is blocked, a limit's size,
   * the day's budget, a cooldown in ms.
   */
  readonly value: string | number | { readonly [field: string]: readonly string[] } | null;
  /**
   * Who stated that: `rule`, `default`, `when[0]`, `override` or `call`; of a mode, an exemption
   * and a block `change` if it was set at run time.
   */
  readonly source: string | null;
  /** When a refusal ends, in ms since the start of 1970. */
  readonly untilMs: number | null;
  /** Who made the change that it comes from, if that is known. */
  readonly by: string | null;
}

/** Why a hit would get what it would get: what `peek` says, and the judgement in order. */
export interface Why {
  readonly decision: Decision;
  readonly steps: readonly Step[];
}

/** What can be done with a rule; a limiter with one rule (or one called `default`) has it too. */
interface Operations {
  /**
   * Whether a hit of 1 passes, and spends it: the fastest path.
   *
   * All operations throw alike.
   *
   * @throws TypeError or RangeError for what is no key.
   *
   * @throws TidegateError for a key that is not the rule's, a rule with permits (`operation`) and a
   * closed limiter (`closed`).
   */
  allow(key: Key, options?: CallOptions): boolean;
  /** Spends if the rule allows it, and says how it went. */
  hit(key: Key, cost?: Cost): Decision;
  /** As a hit, but an allowed one spends nothing: for "check, do the work, then {@link record}". */
  check(key: Key, cost?: Cost): Decision;
  /** What a hit would get, changing nothing. With a cost of 0, what is left now. */
  peek(key: Key, cost?: Cost): Decision;
  /** Spends without asking, also in a cooldown. */
  record(key: Key, cost?: Cost): Recorded;
  /** Gives back, never above full; a window's newest first. */
  refund(key: Key, cost?: Cost): void;
  /** A hit whose true cost is known later: spends the estimate, to be settled. */
  reserve(key: Key, estimate: number, options?: CallOptions): Reservation;
  /** Takes all limits of a rule with a `concurrent` one, and holds a slot. */
  permit(key: Key, options?: CallOptions): Permit;
  /** Whether the rule has a `concurrent` limit, so that {@link permit} takes the place of a hit. */
  hasPermits(): boolean;
  /** A batch of {@link allow}, for plain keys: 1 or 0 for each. */
  allowMany(keys: readonly Key[]): Uint8Array;
  /** A batch of {@link hit}. */
  hitMany(keys: readonly Key[]): Decision[];
  /**
   * Waits until a hit is allowed, and spends it; says no at once if it can't be in time. Waiting
   * counts as no denial, and a large cost is not starved by small ones. Keeps the process alive
   * while it waits.
   */
  acquire(key: Key, options?: number | AcquireOptions): Promise<Decision>;
  /**
   * As {@link permit}, when there is a slot; waits as {@link acquire} does. A slot that this rule
   * releases is noticed at once, one of another process or thread within a second.
   */
  acquirePermit(key: Key, options?: WaitOptions): Promise<Permit>;
  /** As {@link reserve}, when the estimate is allowed; waits as {@link acquire} does. */
  acquireReservation(key: Key, estimate: number, options?: WaitOptions): Promise<Reservation>;
  /** Records what was spent of the day's budget, always. */
  spend(key: Key, amount: number, options?: CallOptions): Budget;
  /** How the key stands with its budget. */
  budget(key: Key, options?: CallOptions): Budget;
  /** With backoff: denied less than `quiet` ago; without: a hit of 1 would be denied now. */
  isLimited(key: Key, options?: CallOptions): boolean;
  /**
   * Why a hit would get what it would get: the judgement in order, each number with its source.
   * Changes nothing.
   */
  why(key: Key, cost?: Cost): Why;
  /** What is known of a key; null exactly when its state is that of a new one. */
  stats(key: Key, options?: CallOptions): Stats | null;
  /**
   * Forgets the key's limits, penalties and budget, but never those of a wider scope; ends its
   * block.
   */
  reset(key: Key, options?: CallOptions): void;
  /** Forgets every key; ends all blocks. */
  resetAll(): void;
  /** Drops idle keys now, and says how many. Nothing must call this. */
  prune(): number;
  /** Rows in use, idle ones until they are pruned or taken over. */
  readonly size: number;
  /**
   * Judges a key, or the calls that match, by other limits from the next hit on. What was set for
   * the same target before is replaced.
   *
   * All run-time changes return and throw alike. One that fails has changed nothing.
   *
   * @returns The number of the change, as `changes` lists it.
   *
   * @throws TypeError for an unknown option, or one of another type.
   *
   * @throws RangeError for a `forMs`, `by` or `reason` that is too long.
   *
   * @throws TidegateError (`policy`) for limits that the rule can't have.
   */
  setOverride(target: Key | Match, limits: LimitPatches, options?: ChangeOptions): number;
  /** Takes an override back; 0 if there was none. */
  clearOverride(target: Key | Match, options?: UndoOptions): number;
  /** The overrides in force. */
  overrides(): (
    | { key: (string | Uint8Array)[]; limits: LimitPatches }
    | { match: Match; limits: LimitPatches }
  )[];
  /** Changes the rule's own limits from the next hit on; `{}` takes that back. */
  setDefault(limits: LimitPatches, options?: ChangeOptions): number;
  /** Allows the calls that match from the next hit on, uncounted. */
  addExempt(match: Match, options?: ChangeOptions): number;
  /** Takes an exemption back, the policy's own too; 0 if it was not in force. */
  removeExempt(match: Match, options?: UndoOptions): number;
  /** Puts these exemptions in place of all others. */
  setExempts(matches: readonly Match[], options?: ChangeOptions): number;
  /** The exemptions in force. */
  exempts(): Match[];
  /** Judges in this mode from the next hit on, whatever the policy and its `when` say. */
  setMode(mode: Mode, options?: ChangeOptions): number;
  /** Takes {@link setMode} back; 0 if none was set. */
  clearMode(options?: UndoOptions): number;
  /**
   * Refuses a key, with reason `blocked`: for a ban, or as long as an upstream's `Retry-After`
   * says. An earlier block of the key is replaced. A block is kept with the store; it counts for no
   * cooldown, backoff or alert. Exempt keys pass; {@link record}, {@link spend} and {@link
   * Permit.renew} work; {@link reset} ends it.
   *
   * @throws TidegateError (`store`) if as many keys are blocked as the rule has capacity for.
   */
  block(key: Key, options?: BlockOptions): number;
  /** Ends a block; false if the key was not blocked. */
  unblock(key: Key, options?: UnblockOptions): boolean;
  /** The keys that are blocked. */
  blocks(): BlockedKey[];
}

/**
 * A rule of a limiter: limits that are taken together. Made by {@link Limiter.rule}; keeps its
 * limiter alive.
 */
export declare class Rule {
  private constructor();
  /** The rule's name. */
  readonly name: string;
  /** What happened so far. */
  metrics(): Metrics;
  /**
   * The rule's last denials and alerts; with `since`, the `next` of earlier ones, those after them.
   */
  events(since?: string | null): Events;
  /** The run-time changes of this rule with a number above `since` (0 unless said). */
  changes(since?: number | null): Changes;
}
export interface Rule extends Operations {}

/** A policy at work. */
export declare class Limiter {
  /**
   * A limiter with one rule, `default`, of these limits.
   *
   * ```js
   * const limiter = new Limiter(['5/10s window', '20/min window'], { cooldown: '60s' });
   * ```
   */
  constructor(limits: Limits, options?: LimiterOptions & RuleOptions);
  /** A limiter of a policy as a plain map, as a file has it. */
  static fromPolicy(policy: Policy, options?: LimiterOptions): Limiter;
  /** A limiter of a policy file, YAML or JSON. */
  static fromFile(path: string | URL, options?: LimiterOptions): Limiter;
  /** Reads the tables of a file store, while other processes may use them. */
  static inspect(path: string): Inspected[];
  /** A rule by its name, or the policy's `fallback`; the same object each time. */
  rule(name: string): Rule;
  /** The names of the policy's rules. */
  readonly rules: string[];
  /** Reads the policy file again: all or nothing. */
  reload(): void;
  /**
   * Frees it. Every operation from now on is an error with code `closed`, also one that waits.
   */
  close(): void;
  /** Writes the counts of a file store to the disk, and waits for it. */
  sync(): void;
  /** Findings on the policy. */
  audit(): Finding[];
  /** What happened so far, by rule. */
  metrics(): Metrics[];
  /**
   * The last denials and alerts of all rules; with `since`, the `next` of earlier ones, those after
   * them.
   */
  events(since?: string | null): Events;
  /** The run-time changes of all rules with a number above `since` (0 unless said). */
  changes(since?: number | null): Changes;
}
export interface Limiter extends Operations {}

/** A slot of a concurrent limit, given back when released, disposed of or collected. */
export declare class Permit {
  private constructor();
  /** How it went. */
  readonly decision: Decision;
  /** Whether a slot was given. */
  readonly allowed: boolean;
  /** Whether the slot is not released. (Its lease may have run out.) */
  readonly held: boolean;
  /** Gives the slot back; false if it was no longer held. */
  release(): boolean;
  /** Starts the lease anew; false if the slot is lost. */
  renew(): boolean;
  /** As {@link release}: for `using`. */
  [Symbol.dispose](): void;
}

/** An estimate that was spent. Dropped or disposed of, it stays spent. */
export declare class Reservation {
  private constructor();
  /** How it went; if it was denied nothing is reserved. */
  readonly decision: Decision;
  /** Whether the estimate was spent. */
  readonly allowed: boolean;
  /** Gives back or takes the difference to the true cost, once; false if it was settled before. */
  settle(actual: number): boolean;
  /** Gives the estimate back, once. */
  cancel(): boolean;
  /** Leaves the estimate spent, if it was not settled: for `using`. */
  [Symbol.dispose](): void;
}

/** A clock that only a test moves, so that the test need not wait. */
export declare class ManualClock {
  /** Both in ms: what it shows, and the wall time (since the start of 1970), which moves along. */
  constructor(start?: { start?: number; wall?: number });
  /** Moves on. */
  advance(ms: number): void;
  /** Jumps, back too. */
  set(ms: number): void;
  /** The time. */
  now(): number;
  /** Sets the wall time alone. */
  setWall(ms: number): void;
}

/**
 * What went wrong. Bad arguments are TypeErrors (code `argument`) and RangeErrors (code `range`).
 */
export declare class TidegateError extends Error {
  private constructor();
  /**
   * `policy`, `key`, `rule`, `operation`, `address`, `store`, `file`, `memory`, `closed` or
   * `panic`.
   */
  readonly code: string;
  /** Of a policy: each mistake with its path. */
  readonly problems: { path: string; message: string }[];
}

/**
 * A key of a client's address: IPv4 as it is, IPv6 cut to its first `v6Prefix` bits (56).
 * IPv4-mapped IPv6 addresses are unmapped first; bad text is an error with code `address`.
 */
export declare function ipKey(address: string, v6Prefix?: number): string;

/** The package's version. */
export declare const version: string;
