import type { Guarantees } from '../../base/guarantees.js'

/** The guarantees of the PostgreSQL engine. */
export const postgresGuarantees: Guarantees = {
  engine: 'postgres',
  scope: 'network',
  deadHolder: 'lease',
  durability: 'power loss',
  weaknesses: [
    {
      promise: 'P1',
      how:
        'Grants are committed without waiting for the disk. A server that crashes loses the latest grants, ' +
        'and a promoted standby lacks the grants that it had not received. Then two clients can hold the ' +
        "same lock until the first client's next renewal or commit fails. A primary that keeps running " +
        'after its standby was promoted still renews its grants, so two clients can hold the same lock for ' +
        'as long as the first client reaches no other server.',
    },
    {
      promise: 'P2',
      how:
        "Tokens decrease if a server's wall clock was set back and the server has also lost grants (see " +
        'P1) or has deleted the row of a key that was not used for a minute. They also decrease if a ' +
        'promoted standby lacks the newest grants and its wall clock is behind the time of these grants.',
    },
    {
      promise: 'P5',
      how:
        'A box that receives no NOTIFY, for example behind a transaction pooler, polls ten times a second ' +
        'while it waits. If a grant is released before the transaction that it is bound to has ended, the ' +
        'next waiter polls twenty times a second until that transaction ends.',
    },
    {
      promise: 'P11',
      how:
        "Leases are measured by the server's wall clock. If it is set forward by more than a lease, locks " +
        'are freed early, and the holder finds out at its next renewal or commit. If it is set back, the ' +
        'locks of dead processes are kept longer by the same amount. A promoted standby uses its own clock.',
    },
    {
      promise: 'P13',
      how: 'A promoted standby lacks the commits that it had not received.',
    },
  ],
}
