import * as tidegate from './index.js';
export * from './index.js';
export default tidegate;
