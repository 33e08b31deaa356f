/**
 * Parts of programs that show people the state of a box, such as the console and the command: who waits for whom, and
 * text from others that is safe to print. They run in Node and in a browser.
 */
export { shortDuration } from '../base/duration.js'
export { failureText } from '../base/failure-text.js'
export type { PromiseId } from '../base/guarantees.js'
export { printable, printableJson } from '../base/printable.js'
export { PROMISES } from '../base/promises.js'
export { withoutSecrets } from '../base/secrets.js'
export type { Claim } from '../engine/claim.js'
export { cyclesOf, decidingWaits, waitsOf, type Claimant, type Queue, type Wait } from './waits.js'
