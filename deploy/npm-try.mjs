// What a user might do first, on any platform and in Node, Bun and Deno: run in a folder into which
// `tidegate` was installed.
import { createRequire } from 'node:module';
import process from 'node:process';
import tidegate, { Limiter, TidegateError, version } from 'tidegate';
import { rateLimit } from 'tidegate/express';

function check(holds, what) {
  if (holds) return;
  console.error(`try: ${what} does not hold`);
  process.exit(1);
}

/** Whether a call throws an error of that class and code. */
function throws(call, type, code) {
  try {
    call();
    return false;
  } catch (error) {
    return error instanceof type && error.code === code;
  }
}

const limiter = new Limiter('2/h');
check(limiter.hit('alice').allowed && limiter.hit('alice').allowed, 'two hits are allowed');
const denied = limiter.hit('alice');
check(!denied.allowed && denied.retryAfterMs > 0, 'a third is denied');
check('Retry-After' in denied.headers(), 'a denial has header fields');
check(throws(() => limiter.hit({}), TypeError, 'argument'), 'a wrong key is a TypeError');
check(throws(() => new Limiter('2/mni'), TidegateError, 'policy'), 'a typo is a TidegateError');
check(typeof rateLimit(limiter) === 'function', 'there is middleware');
const required = createRequire(import.meta.url)('tidegate');
check(required.Limiter === Limiter && tidegate === required, 'require and import give one class');
const waited = await new Limiter('1/200ms').acquire('bob', { timeoutMs: 5_000 });
check(waited.allowed, 'a call may wait');
const file = () => new Limiter('1/h', { store: `file:limits-${process.pid}` });
if (process.platform === 'linux') {
  const [one, other] = [file(), file()];
  check(one.hit('carol').allowed && !other.hit('carol').allowed, 'a file is shared');
} else {
  check(throws(file, TidegateError, 'store'), 'a file store is an error off Linux');
}
const { bun, deno, node } = process.versions;
const runtime = bun ? `Bun ${bun}` : deno ? `Deno ${deno}` : `Node ${node}`;
console.log(`tidegate ${version} runs in ${runtime} on ${process.platform}-${process.arch}`);
