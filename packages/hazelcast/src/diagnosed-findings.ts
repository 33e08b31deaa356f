import type { Finding } from 'signalbox'
import { clockFindings, shortDuration } from 'signalbox/engine'
import type { HazelcastFacts, MapFacts } from './diagnosed-facts.js'

const MIN_VERSION = 5
/** Maximum number of keys that a finding names. */
const SHOWN = 5

/** Returns the promises that a cluster does not keep, and how to fix it. */
export function hazelcastFindings(facts: HazelcastFacts): Finding[] {
  const { members, maps, foreign, entries } = facts
  const old = members.filter(({ version }) => version && Number.parseInt(version, 10) < MIN_VERSION)
  const versions = new Set(members.flatMap(({ version }) => version?.replace(/\.\d+$/, '') ?? []))
  const data = members.filter(({ isLite }) => !isLite)
  const unsaved = maps.filter(map => map.backups === 0)
  const expiring = maps.filter(({ ttl }) => ttl !== Infinity)
  const evicting = maps.filter(map => map.eviction !== undefined)
  const all: (Finding | false)[] = [
    old.length > 0 && {
      id: 'version',
      promises: ['P1', 'P13'],
      how:
        `${old.map(({ address, version }) => `${address} is Hazelcast ${version!}`).join(', ')}, which Signalbox ` +
        'is not tested with',
      fix: `use Hazelcast ${MIN_VERSION}.0 or later`,
    },
    versions.size > 1 && {
      id: 'mixed-versions',
      promises: ['P13'],
      how:
        `members have the versions ${[...versions].join(' and ')}, and Community members of different versions ` +
        "may not understand each other's data",
      fix: 'run the same version on all members',
    },
    data.length < 2 && {
      id: 'single-member',
      promises: ['P1', 'P2', 'P13'],
      how:
        `${data.length === 1 ? 'only one member' : 'no member'} keeps data, so nothing has a backup: when it ends, all ` +
        'locks and values are lost, and tokens rise only with the wall clock',
      fix: 'use three or more members, each on its own machine',
    },
    // A single member has no backups.
    data.length >= 2 &&
      unsaved.length > 0 && {
        id: 'no-backup',
        promises: ['P1', 'P2', 'P13'],
        how: `a change in ${named(unsaved)} has no backup when it is confirmed, so it is lost when one member ends`,
        fix: 'set backup-count to 1 or 2 for these maps; asynchronous backups are not enough',
      },
    expiring.length > 0 && {
      id: 'expiring',
      promises: ['P1', 'P2', 'P13'],
      how:
        `entries of ${named(expiring)} expire after ${shortDuration(Math.min(...expiring.map(({ ttl }) => ttl)))}, ` +
        'including values and locks',
      fix: 'set time-to-live-seconds and max-idle-seconds to 0 for these maps',
    },
    evicting.length > 0 && {
      id: 'eviction',
      promises: ['P1', 'P2', 'P13'],
      how:
        `a member with many entries evicts some of ${named(evicting)} (eviction-policy ` +
        `${evicting[0]!.eviction!}), including values and locks`,
      fix: 'set eviction-policy to NONE for these maps',
    },
    foreign.length > 0 && {
      id: 'foreign-entries',
      promises: ['P13'],
      how:
        `another program has written ${foreign.length} ${foreign.length === 1 ? 'entry' : 'entries'} of ${entries}, so ` +
        `locks and values of these keys fail: ${foreign.slice(0, SHOWN).join(', ')}`,
      fix: `remove these entries of ${entries}, and let other programs only read this map`,
    },
  ]
  const clock = (gap: string): string =>
    `a member's clock is ${gap}: tokens start at the wall clock after a cluster has lost its data, and ids of commits ` +
    'expire by it'
  return [...all.filter(each => each !== false), ...clockFindings(facts, ['P2', 'P11'], clock)]
}

function named(maps: readonly MapFacts[]): string {
  return maps.map(({ name }) => name).join(', ')
}
