/**
 * The quorum engine of Signalbox: locks on several independent Redis servers. A holder has the votes of a majority.
 * The way of a request: `quorum-engine.ts` makes a `Candidate` of it, which asks the servers for `Vote`s in a `Round`;
 * a `Voter` is one of the servers. With enough votes, the candidate has a grant.
 */
export { diagnoseRedisQuorum } from './diagnose.js'
export { openRedisQuorum } from './open.js'
