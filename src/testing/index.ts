export type { FailingOperation, FailOptions, Fault } from './failing-engine.js'
export { openTestBox, type TestBox } from './test-box.js'
export { TestClient, type TestAnswer, type TestResult } from './test-client.js'
