import { groupedBy, type ForceRelease, type Inspect, type RequestReport, type Revoke } from 'signalbox/engine'
import type { IdentifiedReport } from 'signalbox/redis'
import type { Answers, Electorate } from './electorate.js'
import { majorityOf } from './tally.js'

/** By the index of the server; undefined for a server that has not answered. */
type Reports = readonly (readonly IdentifiedReport[] | undefined)[]

/** Lists and removes the requests of all sessions. Methods reject as the engine does. */
export class QuorumOperator {
  readonly #electorate: Electorate

  constructor(electorate: Electorate) {
    this.#electorate = electorate
  }

  async inspect(inspect: Inspect): Promise<readonly RequestReport[]> {
    const merged = mergedReports(await this.#reports(inspect))
    return merged.map(({ id: _, order: __, ...report }) => report)
  }

  /**
   * Releases the grant that `inspect` shows with this number, although servers may know it by other numbers. Repeats
   * this until no server has the grant, because further servers may vote for it meanwhile.
   */
  async forceRelease(operation: ForceRelease): Promise<boolean> {
    const { key, number } = operation
    const inspect: Inspect = { type: 'inspect', prefix: key, exact: true }
    let reports = await this.#reports(inspect)
    const found = mergedReports(reports).find(
      report => report.key === key && report.phase === 'held' && report.number === number,
    )
    if (!found) return false
    for (const [index, all] of reports.entries()) {
      // A server that has not answered gets the operation nevertheless.
      if (!all) this.#electorate.voters[index]!.submit(operation).catch(() => undefined)
    }
    let isReleased = false
    for (;;) {
      const votes = reports.map(all =>
        all?.find(report => report.id === found.id && report.key === key && report.phase === 'held'),
      )
      if (votes.every(vote => vote === undefined)) return isReleased
      isReleased = (await this.#releaseVotes(key, votes)) || isReleased
      reports = await this.#reports(inspect)
    }
  }

  /**
   * Removes all requests of a session. A late server also removes the requests that the session has made since, so this
   * waits for late servers.
   */
  async revoke(operation: Revoke): Promise<number> {
    const revoked = this.#electorate.voters.map(voter => voter.submit(operation))
    return Math.max(...(await this.#electorate.outcome(revoked, this.#allInReach, this.#unclear)))
  }

  async #releaseVotes(key: string, votes: readonly (IdentifiedReport | undefined)[]): Promise<boolean> {
    const { majority, voters } = this.#electorate
    const released = votes.flatMap((vote, index) =>
      vote ? [voters[index]!.submit({ type: 'forceRelease', key, number: vote.number })] : [],
    )
    const answers = await this.#electorate.firstAnswers(
      released,
      Math.min(majority, released.length),
      this.#unclear,
    )
    return answers.includes(true)
  }

  /** By the index of the server. */
  async #reports(inspect: Inspect): Promise<Reports> {
    const { voters } = this.#electorate
    const reports = new Array<readonly IdentifiedReport[] | undefined>(voters.length).fill(undefined)
    const asked = voters.map(async (voter, index) => {
      reports[index] = await voter.reports(inspect)
    })
    const failed = ({ pending, failures }: Answers<void>): Error | undefined =>
      pending > 0 ? undefined : this.#electorate.unreachable(failures)
    await this.#electorate.outcome(asked, this.#allInReach, failed)
    return reports
  }

  /** An operator's call takes several round trips, so a distant server gets the whole time limit of its client. */
  readonly #unclear = (state: Answers<unknown>): Error | undefined =>
    state.pending > 0 ? undefined : this.#electorate.unclear(state)

  /**
   * The answers of all servers that do not count as unreachable, if these are a majority. Without the answer of a
   * server that is only late, the temporary vote of a waiter would look like a grant.
   */
  readonly #allInReach = <Answer>({
    answers,
    pending,
    isOver,
  }: Answers<Answer>): readonly Answer[] | undefined =>
    answers.length >= this.#electorate.majority && (isOver || pending === 0) ? answers : undefined
}

/**
 * The requests that a majority of the servers know, in order for each key. A server that did not answer counts as
 * knowing all of them.
 */
function mergedReports(reports: Reports): IdentifiedReport[] {
  const silent = reports.filter(report => report === undefined).length
  const least = Math.max(1, majorityOf(reports.length) - silent)
  // A request that was granted while its server was asked may be reported twice.
  const all = reports.flatMap(ofServer => [
    ...new Map((ofServer ?? []).map(report => [nameOf(report), report])).values(),
  ])
  const byRequest = groupedBy(all, nameOf)
  const known = [...byRequest.values()].filter(({ length }) => length >= least)
  return known.map(same => merged(same, least)).sort(inOrder)
}

function nameOf({ id, key }: IdentifiedReport): string {
  return `${id} ${key}`
}

/** @param all the reports of the servers about one request and one of its keys. */
function merged(all: readonly IdentifiedReport[], least: number): IdentifiedReport {
  const held = all.filter(({ phase }) => phase === 'held')
  const isHeld = held.length >= least
  const others = all.filter(({ phase }) => phase !== 'held')
  const phase = isHeld ? 'held' : others.some(one => one.phase === 'reserved') ? 'reserved' : 'waiting'
  // The time for which a majority keeps it.
  const left = (isHeld ? held : all).map(({ expiresIn }) => expiresIn).sort((one, other) => other - one)
  const [first] = all as [IdentifiedReport]
  return {
    ...first,
    phase,
    order: isHeld ? '' : `${others[0]?.order ?? ''}${first.id}`,
    number: isHeld ? commonest(held.map(({ number }) => number)) : 0,
    age: Math.max(...all.map(({ age }) => age)),
    expiresIn: left[least - 1]!,
  }
}

/** A grant has the number that a majority voted with; the others may have voted with greater ones. */
function commonest(numbers: readonly number[]): number {
  const equal = [...groupedBy(numbers, number => number).values()]
  equal.sort((one, other) => other.length - one.length || one[0]! - other[0]!)
  return equal[0]![0]!
}

/** By key; holders before waiters, and waiters by their place in the queues. */
function inOrder(one: IdentifiedReport, other: IdentifiedReport): number {
  if (one.key !== other.key) return one.key < other.key ? -1 : 1
  return one.order < other.order ? -1 : 1
}
