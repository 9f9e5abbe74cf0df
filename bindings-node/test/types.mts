// The same through `import` in a module: one class, whichever way it is loaded.
import tidegate, { Limiter } from 'tidegate';
import type { Decision } from 'tidegate';

const decision: Decision = new tidegate.Limiter('1/s').hit('a');
console.log(
  decision.allowed ? decision.remaining : decision.retryAfterMs,
  Limiter === tidegate.Limiter,
);
