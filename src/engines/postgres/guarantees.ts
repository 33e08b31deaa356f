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
        'Grants are committed without waiting for the disk. A server that crashes loses those of its last moments, ' +
        'and a standby that is promoted lacks what it had not received. Then two can hold one lock until the first ' +
        'finds out at its next renewal or commit. A primary that lives on beside the standby that took its place ' +
        'renews its grants, so two can hold one lock for as long as the first reaches no other server.',
    },
    {
      promise: 'P2',
      how:
        "Tokens fall when a server's wall clock was set back and it has lost grants, as under P1, or has deleted the " +
        'row of a key that no caller used for a minute. They also fall when a standby that is promoted lacks the ' +
        'newest grants, and its wall clock is behind the time of these.',
    },
    {
      promise: 'P5',
      how:
        'A box that hears no NOTIFY, as behind a pooler that changes connections, looks whether its turn has come ' +
        'ten times a second. So does, twenty times a second, a waiter for a key whose last grant is bound to a ' +
        'transaction that goes on after its release.',
    },
    {
      promise: 'P11',
      how:
        "Leases run by the server's wall clock. Set forward by more than a lease, it frees locks early, and the " +
        'holder finds out at its next renewal or commit. Set back, it keeps the locks of the dead for so much ' +
        'longer. A standby that is promoted brings its own clock.',
    },
    {
      promise: 'P13',
      how: 'A standby that is promoted lacks the commits that it had not received.',
    },
  ],
}
