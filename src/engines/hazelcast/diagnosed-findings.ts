import { shortDuration } from '../../duration.js'
import { clockFindings } from '../../engine/kit/clock-findings.js'
import type { Finding } from '../../engine/diagnosis.js'
import type { HazelcastFacts, MapFacts } from './diagnosed-facts.js'

const LEAST_VERSION = 5

/** What the facts of a cluster mean for the promises. */
export function hazelcastFindings(facts: HazelcastFacts): Finding[] {
  const data = facts.members.filter(({ isLite }) => !isLite)
  return [
    ...versions(facts),
    // With one member there can be no copies.
    ...(data.length < 2 ? alone(data.length) : backups(facts)),
    ...ending(facts),
    ...eviction(facts),
    ...clockFindings(
      facts,
      ['P2', 'P11'],
      gap =>
        `a member's clock is ${gap}: tokens begin at the wall clock when a cluster has lost its data, and ids ` +
        'of changes are kept by it',
    ),
  ]
}

function versions({ members }: HazelcastFacts): Finding[] {
  const findings: Finding[] = []
  const old = members.filter(({ version }) => version && Number.parseInt(version, 10) < LEAST_VERSION)
  if (old.length > 0)
    findings.push({
      id: 'version',
      promises: ['P1', 'P13'],
      how:
        `${old.map(({ address, version }) => `${address} is Hazelcast ${version!}`).join(', ')}, which Signalbox ` +
        'is not tested with',
      mend: `use Hazelcast ${LEAST_VERSION}.0 or later`,
    })
  const different = new Set(members.flatMap(({ version }) => version?.replace(/\.\d+$/, '') ?? []))
  if (different.size > 1)
    findings.push({
      id: 'mixed-versions',
      promises: ['P13'],
      how:
        `members are of the versions ${[...different].join(' and ')}, and Community members of different versions ` +
        "may not understand each other's data",
      mend: 'give all members the same version',
    })
  return findings
}

function alone(members: number): Finding[] {
  return [
    {
      id: 'single-member',
      promises: ['P1', 'P2', 'P13'],
      how:
        `${members === 1 ? 'one member' : 'no member'} keeps data, so nothing has a copy: when it ends, all locks ` +
        'and values are lost, and tokens rise only with the wall clock',
      mend: 'use three members or more, on machines of their own',
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
      how: `a change in ${named(without)} has no copy when it is answered, so it is lost when one member ends`,
      mend: 'set backup-count 1 or 2 for these maps; asynchronous backups do not replace it',
    },
  ]
}

function ending({ maps }: HazelcastFacts): Finding[] {
  const ends = maps.filter(({ life }) => life !== Infinity)
  if (ends.length === 0) return []
  const least = Math.min(...ends.map(({ life }) => life))
  return [
    {
      id: 'expiring',
      promises: ['P1', 'P2', 'P13'],
      how:
        `entries of ${named(ends)} expire after ${shortDuration(least)}, values and the table of all locks among ` +
        'them',
      mend: 'set time-to-live-seconds 0 and max-idle-seconds 0 for these maps',
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
      mend: 'set eviction-policy NONE for these maps',
    },
  ]
}

function named(maps: readonly MapFacts[]): string {
  return maps.map(({ name }) => name).join(', ')
}
