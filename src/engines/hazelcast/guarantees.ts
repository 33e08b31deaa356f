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
      how:
        'A member frees the locks of a client that was away for longer than its `client.cleanup.period`, so a ' +
        'Java program, but no other box, may get in before the grant of such a client has ended. Members that ' +
        'lose their data, or that part from each other, lose or double grants. A Java program that has locked a ' +
        'key does not keep out readers and holders of permits.',
    },
    {
      promise: 'P2',
      how: 'Tokens fall when a cluster loses its data and the wall clock of the next box was set back.',
    },
    {
      promise: 'P4',
      how:
        'Java programs stand in a queue of the member, so one of them may come in before boxes that have waited ' +
        'for longer. A box loses its place there when its call ends, after 1 s, then 2 s and so on up to 30 s, so ' +
        'Java programs that are inside for longer than that come in before it.',
    },
    {
      promise: 'P9',
      how:
        'A member keeps the lock of an exclusive key until its lease or its client ends, up to two seconds longer ' +
        'than a grant. Other boxes and Java programs wait for as long, even if the session of a stopped process ' +
        'was revoked. A box that gave up or died behind a Java program may be given the lock once more when that ' +
        'program leaves. A box that lives gives it back at once; else it ends within two seconds.',
    },
    {
      promise: 'P11',
      how:
        'A box takes a living holder for dead if, when the box is opened, the wall clock of a member was set ' +
        "forward and the box's own is ahead of the holder's, each by more than twice the lease and half a minute. " +
        'The holder is told of its loss. One of these clocks alone frees nothing.',
    },
    {
      promise: 'P13',
      how:
        'State lives in the memory of the members. It is lost when all members that have a copy end before ' +
        'another one has it, and by a split of the cluster.',
    },
  ],
}
