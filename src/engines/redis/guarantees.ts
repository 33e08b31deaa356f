import type { Guarantees, Weakness } from '../../guarantees.js'

const FOREIGN: Weakness = {
  promise: 'P4',
  how: 'A foreign client that sets the held key itself takes part in no queue, so it can come in before those who wait.',
}
const NUMBERS_LOST: Weakness = {
  promise: 'P2',
  how: 'Tokens fall when a server loses its data and its wall clock was set back as well; and when a replica takes over that had not got the newest grants, while its wall clock still shows less than that of the old master did at these.',
}
const SERVER_CLOCK: Weakness = {
  promise: 'P11',
  how: "Leases run by the server's wall clock. When it is set forward by more than a lease, what is held is free early, and its holder finds out at its next renewal or commit; set back, it keeps the locks of the dead for as long. A replica that takes over brings its own clock.",
}
const FAILOVER: Weakness = {
  promise: 'P1',
  how: 'A server that ends before its disk, or the replica that takes its place, had the newest grants loses them, so two can hold one lock until the first finds out at its next renewal or commit. A master that lives on when a replica has taken its place renews what it gave, so two can hold one lock for as long as the first reaches no other server. With `minReplicas` what fewer replicas have does not count: then it takes a server that comes back without its data, or the promotion of a replica that lacks what others have.',
}
const LOST_COMMITS: Weakness = {
  promise: 'P13',
  how: 'A server that is lost before its disk or its replica had the newest commits loses them.',
}

const ACROSS_SLOTS: Weakness = {
  promise: 'P6',
  how: 'Keys in several hash slots are taken slot by slot, in one order: those of the first slots stay held while the others are waited for.',
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
