// The same classes as `require` gives: the native part is loaded once.
import tidegate from './index.js';

export const {
  Decision,
  Limiter,
  ManualClock,
  Permit,
  Reservation,
  Rule,
  TidegateError,
  ipKey,
  version,
} = tidegate;
export default tidegate;
