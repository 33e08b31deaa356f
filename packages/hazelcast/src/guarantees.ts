import type { Guarantees } from 'signalbox'

/** The guarantees of the Hazelcast engine. */
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
        '`client.cleanup.period`. Then a Java program, but no other box, can get the lock before that ' +
        "client's grant has expired. If members lose their data, or the cluster splits, grants can be lost " +
        'or given twice. A Java program that has locked a key does not exclude readers or permit holders.',
    },
    {
      promise: 'P2',
      how: 'Tokens decrease if a cluster loses its data and the wall clock of the next box was set back.',
    },
    {
      promise: 'P4',
      how:
        'A request for several keys that waits behind another waiting one with a common key joins the queues of ' +
        'its keys when that one is granted. Until then, requests for one key alone may be served before it. ' +
        'Java programs wait in a queue of the member, so a Java program can be served before boxes that ' +
        'have waited longer. A box loses its place in that queue when its call times out, after 1 s, then ' +
        '2 s, and so on up to 30 s. If a Java program holds the lock for longer than that, other Java ' +
        'programs get ahead of the box.',
    },
    {
      promise: 'P9',
      how:
        'A member keeps an exclusive key locked until the lease expires or the client disconnects, for up ' +
        'to two seconds longer than the grant. Other boxes and Java programs wait that long, even if the ' +
        'session of a stopped process was revoked. If a box gives up or dies while it waits for a Java ' +
        'program, it may still receive the lock when that program releases it. A live box releases that ' +
        'lock at once; otherwise it expires within two seconds. Keys that are kept for a request for several keys ' +
        'are freed five to eight seconds after its box has died or stopped.',
    },
    {
      promise: 'P11',
      how:
        'When a box opens, it can mistake a live holder for a dead one, but only if two clocks are wrong ' +
        "at once: the wall clock of a member was set forward, and the box's own wall clock is ahead of the " +
        "holder's, each by more than twice the lease plus half a minute. Then the holder's locks are " +
        'freed, and the holder is notified.',
    },
    {
      promise: 'P13',
      how:
        'State lives in the memory of the members. It is lost if all members that have a copy fail before ' +
        'another member has one, or if the cluster splits. Then a commit of several keys can be lost for some of them.',
    },
  ],
}
