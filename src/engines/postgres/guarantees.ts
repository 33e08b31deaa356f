import type { Guarantees } from '../../guarantees.js'

/** What the PostgreSQL engine promises, and what it can't. */
export const postgresGuarantees: Guarantees = {
  engine: 'postgres',
  scope: 'network',
  deadHolder: 'lease',
  durability: 'power loss',
  weaknesses: [
    {
      promise: 'P1',
      how:
        'Grants are committed without waiting for the disk. A server that crashes loses the latest ones, ' +
        'and a promoted standby lacks those that it had not received. Then two clients can hold the same ' +
        "lock until the first one's next renewal or commit fails. A primary that keeps running after its " +
        'standby was promoted still renews its grants, so two clients can hold the same lock for as long ' +
        'as the first one reaches no other server.',
    },
    {
      promise: 'P2',
      how:
        "Tokens decrease if a server's wall clock was set back and it has also lost grants, as under P1, " +
        'or deleted the row of a key that nobody used for a minute. They also decrease if a promoted ' +
        'standby lacks the newest grants and its wall clock is behind their time.',
    },
    {
      promise: 'P5',
      how:
        'A box that receives no NOTIFY, for example behind a transaction pooler, polls for its turn ten ' +
        'times a second. A waiter for a key whose last grant is bound to a transaction that outlasts its ' +
        'release polls twenty times a second.',
    },
    {
      promise: 'P11',
      how:
        "Leases run on the server's wall clock. If it is set forward by more than a lease, locks are " +
        'freed early, and the holder finds out at its next renewal or commit. If it is set back, the ' +
        'locks of dead processes are kept longer by that much. A promoted standby brings its own clock.',
    },
    {
      promise: 'P13',
      how: 'A promoted standby lacks the commits that it had not received.',
    },
  ],
}
