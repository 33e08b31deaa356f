import type { Guarantees, Weakness } from '../../guarantees.js'
import type { CpMode } from './given-hazelcast.js'

const CUT_OFF =
  'A member frees the locks of a client that was away for longer than its `client.cleanup.period`, so a Java program may get in before the grant of such a client has ended; other boxes may not.'
const SESSION_ENDED =
  'The CP subsystem frees the FencedLocks of a client that was away for longer than its `session-time-to-live-seconds`, so a Java program may get in before the grant of such a client has ended; other boxes may not.'
const MEMBERS_LOST = 'Members that lose what they had, or that part from each other, lose or double grants.'

const NOT_EXCLUSIVE =
  'Readers and permits are between boxes alone: a Java program that has locked the key keeps none of them out.'

const NUMBERS_LOST: Weakness = {
  promise: 'P2',
  how: 'Tokens fall when a cluster loses its data and the wall clock of the next box was set back.',
}
const JAVA_QUEUE: Weakness = {
  promise: 'P4',
  how: 'Java programs stand in a queue of the member, so one of them may come in before boxes that wait for longer; and a box loses its place among them when its call there ends, after 1 s, then 2 s and so on up to 30 s, so Java programs that are inside for longer than that come in before it.',
}
const JAVA_CP_QUEUE: Weakness = {
  promise: 'P4',
  how: 'Java programs stand in a queue of the CP group, so one of them may come in before boxes that wait for longer; and a box loses its place among them each second, so Java programs that are inside for longer than that can keep it waiting without end.',
}
const SESSIONS: Weakness = {
  promise: 'P9',
  how: 'The FencedLock of a key stays locked until the CP session of a client that died, was cut off for good or is stopped has ended: for `session-time-to-live-seconds`, 300 by default, however short the lease was, and also when its session was revoked.',
}
const KEPT_LOCKS: Weakness = {
  promise: 'P12',
  how: 'The members and the client keep a FencedLock for each key that was ever locked exclusively: nothing takes one away without making its name useless.',
}

const BASE = { engine: 'hazelcast', scope: 'network', durability: 'replication' } as const

const OVER_MAPS: Guarantees = {
  ...BASE,
  deadHolder: 'lease',
  weaknesses: [
    { promise: 'P1', how: `${CUT_OFF} ${MEMBERS_LOST} ${NOT_EXCLUSIVE}` },
    NUMBERS_LOST,
    JAVA_QUEUE,
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

const OVER_UNSAFE_CP: Guarantees = {
  ...OVER_MAPS,
  engine: 'hazelcast, unsafe CP subsystem',
  deadHolder: 'session timeout',
  weaknesses: [
    { promise: 'P1', how: `${SESSION_ENDED} ${MEMBERS_LOST} ${NOT_EXCLUSIVE}` },
    NUMBERS_LOST,
    JAVA_CP_QUEUE,
    SESSIONS,
    KEPT_LOCKS,
    ...OVER_MAPS.weaknesses.filter(({ promise }) => promise === 'P13'),
  ],
}

const OVER_CP: Guarantees = {
  ...OVER_UNSAFE_CP,
  engine: 'hazelcast, CP subsystem',
  weaknesses: [
    {
      promise: 'P1',
      how: `${SESSION_ENDED} A CP subsystem that was lost with a majority of its members, and made anew, knows no grant of before, so two can hold one lock until the lease of the first is over. ${NOT_EXCLUSIVE}`,
    },
    {
      promise: 'P2',
      how: 'Tokens fall when a majority of the CP members lost what they had, so that the CP subsystem was reset, and the wall clock of the next box was set back.',
    },
    JAVA_CP_QUEUE,
    SESSIONS,
    KEPT_LOCKS,
    {
      promise: 'P13',
      how: 'Values live in maps, apart from those that were committed just now: they are lost when all members that have a copy end before another one has it, and by a split of the cluster.',
    },
  ],
}

/** What the Hazelcast engine promises, with and without the CP subsystem. */
export function hazelcastGuarantees(cp?: CpMode): Guarantees {
  if (cp === undefined) return OVER_MAPS
  return cp === 'safe' ? OVER_CP : OVER_UNSAFE_CP
}
