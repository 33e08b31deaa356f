/**
 * The Hazelcast engine of Signalbox. `open` and `diagnose` of Signalbox import this package when a URL begins with
 * `hazelcast:`. It uses only exports of the package `signalbox`. Start reading at `hazelcast-engine.ts`.
 *
 * @module
 */
export { diagnoseHazelcast } from './diagnose.js'
export { openHazelcast } from './open.js'
