import type { Guarantees } from '../../guarantees.js'

/** What the Hazelcast engine promises. */
export const HAZELCAST_GUARANTEES: Guarantees = {
  engine: 'hazelcast',
  scope: 'network',
  deadHolder: 'lease',
  durability: 'replication',
  weaknesses: [
    {
      promise: 'P1',
      how: 'A member frees the locks of a client that was away for longer than its `client.cleanup.period`, so a Java program may get in before the grant of such a client has ended; other boxes may not. Members that lose what they had, or that part from each other, lose or double grants.',
    },
    {
      promise: 'P2',
      how: 'Tokens fall when a cluster loses its data and the wall clock of the next box was set back.',
    },
    {
      promise: 'P4',
      how: 'Java programs stand in a queue of the member, so one of them may come in before boxes that wait for longer.',
    },
    {
      promise: 'P9',
      how: 'A member keeps the lock of a key until its lease ends, or its client does: for up to two seconds longer than a grant, and also when the session of a stopped process was revoked.',
    },
    {
      promise: 'P13',
      how: 'State lives in the memory of the members: it is lost when all that have a copy end before another one has it, and by a split of the cluster.',
    },
  ],
}
