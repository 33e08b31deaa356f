import type { Guarantees } from '../../guarantees.js'

/** What the Hazelcast engine promises. */
export const hazelcastGuarantees: Guarantees = {
  engine: 'hazelcast',
  scope: 'network',
  deadHolder: 'lease',
  durability: 'replication',
  weaknesses: [
    {
      promise: 'P1',
      how: 'A member frees the locks of a client that was away for longer than its `client.cleanup.period`, so a Java program may get in before the grant of such a client has ended; other boxes may not. Members that lose what they had, or that part from each other, lose or double grants. Readers and permits are between boxes alone: a Java program that has locked the key keeps none of them out.',
    },
    {
      promise: 'P2',
      how: 'Tokens fall when a cluster loses its data and the wall clock of the next box was set back.',
    },
    {
      promise: 'P4',
      how: 'Java programs stand in a queue of the member, so one of them may come in before boxes that wait for longer; and a box loses its place among them when its call there ends, after 1 s, then 2 s and so on up to 30 s, so Java programs that are inside for longer than that come in before it.',
    },
    {
      promise: 'P9',
      how: 'A member keeps the lock of an exclusive key until its lease ends, or its client does: for up to two seconds longer than a grant. Other boxes and Java programs wait for as long, also when the session of a stopped process was revoked. One that waits behind a Java program and gives up or dies may be given the lock once more when that program leaves: a box that lives gives it back at once, else it ends within two seconds.',
    },
    {
      promise: 'P11',
      how: "A box that is opened when the wall clock of a member has been set forward, and its own is ahead of the holder's, each by more than twice the lease and half a minute, takes the holder for dead; the holder is told that it lost what it held. One of these clocks alone frees nothing.",
    },
    {
      promise: 'P13',
      how: 'State lives in the memory of the members: it is lost when all that have a copy end before another one has it, and by a split of the cluster.',
    },
  ],
}
