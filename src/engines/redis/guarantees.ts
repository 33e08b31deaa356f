import type { Guarantees, Weakness } from '../../guarantees.js'

const FOREIGN: Weakness = {
  promise: 'P4',
  how: 'A foreign client that sets the held key itself stands in no queue, so it can come in before the waiters.',
}
const NUMBERS_LOST: Weakness = {
  promise: 'P2',
  how:
    'Tokens fall when a server loses its data and its wall clock was set back as well. They also fall when a ' +
    'replica takes over that lacks the newest grants, and its wall clock is behind the time of these.',
}
const SERVER_CLOCK: Weakness = {
  promise: 'P11',
  how:
    "Leases run by the server's wall clock. Set forward by more than a lease, it frees locks early, and the holder " +
    'finds out at its next renewal or commit. Set back, it keeps the locks of the dead for so much longer. A ' +
    'replica that takes over brings its own clock.',
}
const FAILOVER: Weakness = {
  promise: 'P1',
  how:
    'The newest grants are lost when a server ends before its disk, or the replica that takes its place, has them. ' +
    'Then two can hold one lock until the first finds out at its next renewal or commit. A master that lives on ' +
    'beside the replica that took its place renews its grants, so two can hold one lock for as long as the first ' +
    'reaches no other server. With `minReplicas`, this takes a server that comes back without its data, or the ' +
    'promotion of a replica that lacks what others have.',
}
const LOST_COMMITS: Weakness = {
  promise: 'P13',
  how: 'The newest commits are lost when a server ends before its disk or its replica has them.',
}

const ACROSS_SLOTS: Weakness = {
  promise: 'P6',
  how:
    'Keys in several hash slots are taken slot by slot, in one order. A caller holds those of the first slots while ' +
    'it waits for the others.',
}

/** What the Redis engine promises, on one server or on a cluster. */
export function redisGuarantees(cluster: boolean): Guarantees {
  return {
    engine: 'redis',
    scope: 'network',
    deadHolder: 'lease',
    durability: 'replication',
    weaknesses: [
      FAILOVER,
      NUMBERS_LOST,
      FOREIGN,
      ...(cluster ? [ACROSS_SLOTS] : []),
      SERVER_CLOCK,
      LOST_COMMITS,
    ],
  }
}
