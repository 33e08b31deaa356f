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
        'A member frees the locks of a client that was disconnected for longer than its ' +
        '`client.cleanup.period`. Then a Java program, but no other box, can get the lock before the ' +
        'grant of that client has expired. Members that lose their data, or a cluster that splits, can ' +
        'lose grants or give them twice. A Java program that has locked a key does not exclude readers or ' +
        'permit holders.',
    },
    {
      promise: 'P2',
      how: 'Tokens decrease if a cluster loses its data and the wall clock of the next box was set back.',
    },
    {
      promise: 'P4',
      how:
        'Java programs wait in a queue of the member, so one of them can come before boxes that have ' +
        'waited longer. A box loses its place in that queue when its call times out, after 1 s, then 2 s ' +
        'and so on up to 30 s. If a Java program holds the lock for longer than that, other Java programs ' +
        'get ahead of the box.',
    },
    {
      promise: 'P9',
      how:
        'A member keeps the lock of an exclusive key until the lease expires or the client disconnects, ' +
        'up to two seconds longer than the grant. Other boxes and Java programs wait that long, even if ' +
        'the session of a stopped process was revoked. A box that gave up or died behind a Java program ' +
        'may still be given the lock when that program releases it. A live box returns it at once; ' +
        'otherwise it expires within two seconds.',
    },
    {
      promise: 'P11',
      how:
        'A box considers a live holder dead if, when the box opens, the wall clock of a member was set ' +
        "forward and the box's own is ahead of the holder's, each by more than twice the lease plus half " +
        'a minute. The holder is notified of the loss. One of these clocks alone frees nothing.',
    },
    {
      promise: 'P13',
      how:
        'State lives in the memory of the members. It is lost if all members that have a copy fail before ' +
        'another one has it, or if the cluster splits.',
    },
  ],
}
