import { shortDuration } from '../../duration.js'
import { clockFindings } from '../../engine/kit/clock-findings.js'
import type { Finding } from '../../engine/diagnosis.js'
import type { HazelcastFacts, MapFacts } from './diagnosed-facts.js'

const MIN_VERSION = 5

/** Returns the promises that a cluster does not keep, and how to fix it. */
export function hazelcastFindings(facts: HazelcastFacts): Finding[] {
  const data = facts.members.filter(({ isLite }) => !isLite)
  return [
    ...versions(facts),
    // A single member has no backups.
    ...(data.length < 2 ? alone(data.length) : backups(facts)),
    ...ending(facts),
    ...eviction(facts),
    ...clockFindings(
      facts,
      ['P2', 'P11'],
      gap =>
        `a member's clock is ${gap}: tokens start at the wall clock after a cluster has lost its data, and ids ` +
        'of commits expire by it',
    ),
  ]
}

function versions({ members }: HazelcastFacts): Finding[] {
  const findings: Finding[] = []
  const old = members.filter(({ version }) => version && Number.parseInt(version, 10) < MIN_VERSION)
  if (old.length > 0)
    findings.push({
      id: 'version',
      promises: ['P1', 'P13'],
      how:
        `${old.map(({ address, version }) => `${address} is Hazelcast ${version!}`).join(', ')}, which Signalbox ` +
        'is not tested with',
      fix: `use Hazelcast ${MIN_VERSION}.0 or later`,
    })
  const different = new Set(members.flatMap(({ version }) => version?.replace(/\.\d+$/, '') ?? []))
  if (different.size > 1)
    findings.push({
      id: 'mixed-versions',
      promises: ['P13'],
      how:
        `members are of the versions ${[...different].join(' and ')}, and Community members of different versions ` +
        "may not understand each other's data",
      fix: 'run the same version on all members',
    })
  return findings
}

function alone(members: number): Finding[] {
  return [
    {
      id: 'single-member',
      promises: ['P1', 'P2', 'P13'],
      how:
        `${members === 1 ? 'only one member' : 'no member'} keeps data, so nothing has a backup: when it ends, all locks ` +
        'and values are lost, and tokens rise only with the wall clock',
      fix: 'use three or more members, each on its own machine',
    },
  ]
}

function backups({ maps }: HazelcastFacts): Finding[] {
  const without = maps.filter(map => map.backups === 0)
  if (without.length === 0) return []
  return [
    {
      id: 'no-backup',
      promises: ['P1', 'P2', 'P13'],
      how: `a change in ${named(without)} has no backup when it is confirmed, so it is lost when one member ends`,
      fix: 'set backup-count to 1 or 2 for these maps; asynchronous backups are not enough',
    },
  ]
}

function ending({ maps }: HazelcastFacts): Finding[] {
  const ends = maps.filter(({ ttl }) => ttl !== Infinity)
  if (ends.length === 0) return []
  const least = Math.min(...ends.map(({ ttl }) => ttl))
  return [
    {
      id: 'expiring',
      promises: ['P1', 'P2', 'P13'],
      how:
        `entries of ${named(ends)} expire after ${shortDuration(least)}, values and the table of all locks among ` +
        'them',
      fix: 'set time-to-live-seconds and max-idle-seconds to 0 for these maps',
    },
  ]
}

function eviction({ maps }: HazelcastFacts): Finding[] {
  const evicting = maps.filter(map => map.eviction !== undefined)
  if (evicting.length === 0) return []
  return [
    {
      id: 'eviction',
      promises: ['P1', 'P2', 'P13'],
      how:
        `a member with many entries evicts some of ${named(evicting)} (eviction-policy ` +
        `${evicting[0]!.eviction!}), values and the table of all locks among them`,
      fix: 'set eviction-policy to NONE for these maps',
    },
  ]
}

function named(maps: readonly MapFacts[]): string {
  return maps.map(({ name }) => name).join(', ')
}
