// Real calls, for `tsc --strict`: what must compile does, and what must not is marked.
import tidegate, { Decision, Limiter, ManualClock, TidegateError, ipKey, version } from 'tidegate';
import type {
  Allowed,
  BlockedKey,
  Change,
  ChangeOptions,
  Changes,
  Denied,
  Key,
  LimitLeft,
} from 'tidegate';
import type { Mode, Permit, Reservation, Rule } from 'tidegate';

const clock = new ManualClock({ start: 0, wall: 1_700_000_000_000 });
const limiter = new Limiter(['5/10s window', { max: 20, per: 60_000, name: 'per-minute' }], {
  clock,
  store: 'memory:types',
  capacity: 100,
  onFull: 'deny',
  warnAt: 0.8,
  cooldown: '60s',
  backoff: { steps: [1000, '2s'], quiet: 60_000, enforce: true },
  budget: { daily: 500, perHit: 100, resetHourUtc: 4 },
  when: [{ match: { role: ['admin', 'system'] }, limits: { 'per-minute': { max: 60 } } }],
  exempt: [{ ip: '10.0.0.0/8' }],
  attach: { upgrade: 'https://example.com' },
});
const rule: Rule = limiter.rule('default');
const keys: Key[] = [
  'alice',
  Buffer.from('bob'),
  new Uint8Array([1]),
  42,
  ['telegram', 'main', 'carol'],
];

const yes: boolean = rule.allow(keys[0]!, { ip: '10.1.2.3' });
const decision: Decision = rule.hit('alice', {
  cost: 2,
  max: 30,
  role: 'guest',
  age: 7,
  staff: false,
});
if (decision.allowed) {
  const allowed: Allowed = decision;
  const wait: 0 = allowed.retryAfterMs;
  const none: null = allowed.attach;
  console.log(wait, none, allowed.remaining);
} else {
  const denied: Denied = decision;
  const reason: string = denied.reason;
  const wait: number | null = denied.retryAfterMs;
  console.log(reason, wait, denied.attach);
  // @ts-expect-error a wait may be none
  wait + 1;
}
if ((decision as unknown) instanceof Decision) console.log('it is');
const first: LimitLeft | undefined = decision.limits[0];
const resets: number | undefined = first?.resetAfterMs;
const more: number | null | undefined = first?.moreAfterMs;
console.log(
  decision.limits.map(({ name, max, remaining }) => `${name}: ${max - remaining}`),
  resets,
  more,
);
const headers: Record<string, string> = decision.headers('ietf');
const again: Decision[] = [
  rule.check('a'),
  rule.peek('a', 0),
  limiter.hit(1),
  ...limiter.hitMany(['a', 'b']),
];
const used: number = rule.record('a', 3).used;
rule.refund('a', { cost: 1 });
const mask: Uint8Array = rule.allowMany(['a', 'b']);
const permit: Permit = limiter.permit('job');
const until: number | null | undefined = rule.why('alice', { cost: 2, tier: 'free' }).steps[0]
  ?.untilMs;
const whyNot: boolean = limiter.why('alice').decision.allowed && until === null;
const renewed: boolean = permit.held && permit.renew() && permit.release();
const reserved: Reservation = rule.reserve('alice', 400, { tier: 'free' });
const settled: boolean = reserved.settle(150) || reserved.cancel();
{
  using held = limiter.permit('job');
  console.log(held.allowed);
}
async function wait(): Promise<boolean> {
  const signal = AbortSignal.timeout(1000);
  const later = await rule.acquire('alice', { cost: 5, timeoutMs: 2 ** 40, signal, role: 'guest' });
  const slot: Permit = await rule.acquirePermit('job', { timeoutMs: 5, signal, role: 'guest' });
  const spent: Reservation = await rule.acquireReservation('alice', 5, { max: 9, timeoutMs: 5 });
  if (slot.allowed && spent.cancel()) return true;
  return later.allowed && (await limiter.acquire('alice')).allowed;
}
const over: boolean = rule.spend('alice', 499).over || rule.budget('alice').overPerHit;
const left: number | undefined = rule.stats('alice')?.limits['5/10s']?.remaining;
rule.setOverride('alice', '60/min');
rule.setOverride({ role: 'staff' }, { 'per-minute': { max: 60, per: 1000 } });
rule.setOverride('alice', { 'per-minute': { max: 60, algorithm: 'window', scope: ['channel'] } });
const why: ChangeOptions = { forMs: 3_600_000, by: 'ops', reason: 'a drill' };
const who = { by: 'ops', reason: undefined };
const numbers: number[] = [
  rule.setOverride('alice', '60/min', why),
  rule.clearOverride({ role: 'staff' }, who),
  rule.setDefault({}, why),
  rule.addExempt({ role: ['admin'] }, why),
  rule.removeExempt({ role: 'admin' }, who),
  rule.setExempts([...rule.exempts()], why),
  rule.setMode('shadow', { forMs: null }),
  rule.clearMode(),
  limiter.block(['telegram', 42], { ...why, action: 'ping', age: 7 }),
];
const gone: boolean = rule.unblock('alice', { by: 'ops', action: 'ping' });
const mode: Mode = 'off';
rule.setMode(mode);
const blocked: BlockedKey | undefined =
  rule.blocks()[0] ?? rule.stats('alice')?.blocked ?? undefined;
const end: number | null | undefined = blocked?.untilMs;
const trail: Changes = limiter.changes();
const change: Change | undefined = rule.changes(trail.next).changes[0];
if (change?.op === 'block' && change.target && 'key' in change.target) {
  const part: string | Uint8Array | undefined = change.target.key[0];
  console.log(part, change.untilMs, change.by, end, numbers);
}
console.log(rule.overrides(), rule.isLimited('a'));
rule.reset('alice');
rule.reset(42n);
rule.allow(['telegram', 42, 7n, new Uint8Array(1)]);
rule.resetAll();
const counts: number =
  rule.prune() + rule.size + limiter.size + rule.metrics().allowed + limiter.metrics().length;
const seen: { events: { atMs: number }[]; next: string; missed: number } = limiter.events();
const last = [...rule.events().events, ...limiter.events(seen.next).events].map(
  (event) => event.atMs,
);
const severities: ('info' | 'warn')[] = limiter.audit().map((finding) => finding.severity);
limiter.reload();
limiter.sync();
limiter.close();
Limiter.fromPolicy({ version: 1, rules: { messages: { limits: '20/min' } } }, { clock })
  .rule('messages')
  .allow('a');
Limiter.fromFile(new URL('file:///policy.yaml'), { store: 'memory' });
Limiter.inspect('limits').map((table) => table.topOffenders);
try {
  ipKey('::1', 64);
} catch (error) {
  if (error instanceof TidegateError) console.log(error.code, error.problems[0]?.path);
}
console.log(tidegate.version === version, clock.now());

// @ts-expect-error no key
rule.allow(null);
// @ts-expect-error no key
rule.allow(true);
// @ts-expect-error rules come from limiters
new tidegate.Rule();
// @ts-expect-error not a mode
new Limiter('1/s', { mode: 'of' });
// @ts-expect-error not a mode
rule.setMode('of');
// @ts-expect-error milliseconds
rule.setMode('off', { forMs: '1h' });
// @ts-expect-error milliseconds
rule.block('alice', { forMs: '1h' });
// @ts-expect-error it is forMs
rule.block('alice', { for: 60_000 });
// @ts-expect-error it is forMs
rule.setMode('off', { for: 60_000 });
// @ts-expect-error a name is text
rule.block('alice', { by: 7 });
// @ts-expect-error a block has no cost
rule.block('alice', { cost: 2 });
// @ts-expect-error a typing mistake
rule.setDefault({}, { forMS: 5 });
// @ts-expect-error what is taken back has no end
rule.clearMode({ forMs: 5 });
// @ts-expect-error what is taken back has no end
rule.unblock('alice', { forMs: 5 });
// @ts-expect-error a number
rule.changes('1');
// @ts-expect-error operations are words of the contract
if (change?.op === 'setMode') console.log('never');
// @ts-expect-error a typing mistake
new Limiter('1/s', { warnsAt: 1 });
// @ts-expect-error a decision is read, not written
decision.allowed = true;
// @ts-expect-error a decision is read, not written
decision.limits = [];
// @ts-expect-error there may never be more
const never: number | undefined = decision.limits[0]?.moreAfterMs;
console.log(
  yes,
  headers,
  again,
  used,
  mask,
  renewed,
  settled,
  wait,
  over,
  left,
  gone,
  counts,
  last,
  severities,
);
