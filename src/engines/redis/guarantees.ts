import type { Guarantees, Weakness } from '../../base/guarantees.js'

const FOREIGN: Weakness = {
  promise: 'P4',
  how:
    "A client of another kind that sets a lock's key itself does not queue, so it can get the lock before " +
    'the waiters.',
}
const NUMBERS_LOST: Weakness = {
  promise: 'P2',
  how:
    'Tokens decrease if a server loses its data and its wall clock was also set back. They also decrease ' +
    'if a promoted replica lacks the newest grants and its wall clock is behind the time of these grants.',
}
const SERVER_CLOCK: Weakness = {
  promise: 'P11',
  how:
    "Leases are measured by the server's wall clock. If it is set forward by more than a lease, locks are " +
    'freed early, and the holder finds out at its next renewal or commit. If it is set back, the locks of ' +
    'dead processes are kept longer by the same amount. A promoted replica uses its own clock.',
}
const FAILOVER: Weakness = {
  promise: 'P1',
  how:
    'The newest grants are lost if a server fails before they are on its disk or on the replica that ' +
    "replaces it. Then two clients can hold the same lock until the first client's next renewal or commit " +
    'fails. A master that keeps running after its replica was promoted still renews its grants, so two ' +
    'clients can hold the same lock for as long as the first client reaches no other server. With ' +
    '`minReplicas`, this happens only if a server restarts without its data, or if a replica is promoted ' +
    'that lacks what other replicas have.',
}
const LOST_COMMITS: Weakness = {
  promise: 'P13',
  how: 'The newest commits are lost if a server fails before they are on its disk or on its replica.',
}

/** The promises of the Redis engine, on one server or on a cluster. */
export const redisGuarantees: Guarantees = {
  engine: 'redis',
  scope: 'network',
  deadHolder: 'lease',
  durability: 'replication',
  weaknesses: [FAILOVER, NUMBERS_LOST, FOREIGN, SERVER_CLOCK, LOST_COMMITS],
}
