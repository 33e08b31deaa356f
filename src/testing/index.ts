export type { FailingOperation, FailOptions, Fault } from './failing-engine.js'
export { openTestBox, type TestBox } from './test-box.js'
