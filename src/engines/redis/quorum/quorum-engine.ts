import type { Clock } from '../../../clock.js'
import {
  ClosedError,
  IndeterminateError,
  InvalidArgumentError,
  UnavailableError,
  type SignalboxError,
} from '../../../errors.js'
import type {
  Enqueue,
  Engine,
  ExtendOrYield,
  ForceRelease,
  Listener,
  SessionInfo,
  Operation,
  OutcomeOf,
  RequestReport,
  Revoke,
  RequestStatus,
} from '../../../engine/contract.js'
import type { IdentifiedReport } from '../operator.js'
import { Candidate, type CandidateParts } from './candidate.js'
import { Electorate } from './electorate.js'
import { quorumGuarantees } from './guarantees.js'
import { Later } from './later.js'
import { mergedReports } from './merged-reports.js'
import { NumberClock } from './number-clock.js'
import { poll, type PollState } from './poll.js'
import { Voter, type VotingEngine } from './voter.js'

/** A grant that is held for so many milliseconds is asked for at those servers, too, whose votes it did not need. */
const COMPLETE_AFTER = 5
/** So many milliseconds after a grant the servers that had no vote in it are told its number. */
const RAISE_AFTER = 100
/** So many milliseconds a closing box waits for servers that do not answer. */
const LEAVE_WITHIN = 1000

/** What a quorum engine is made of. */
export interface QuorumParts {
  /** For messages: the URL without passwords. */
  readonly name: string
  /** One a server; an engine that others use, too, does not count twice. */
  readonly engines: readonly VotingEngine[]
  readonly clock: Clock
  readonly numbers?: NumberClock
}

/**
 * Locks over several Redis servers that know nothing of each other: who has the votes of a majority has the lock, as in
 * Redlock. Every server has the lock table with its queues, and all of them have the same order in their queues, so that
 * those who meet agree on who is first, and are woken.
 */
export class QuorumEngine implements Engine {
  readonly name: string
  readonly guarantees = quorumGuarantees
  readonly tellsWanted = false
  readonly #clock: Clock
  readonly #electorate: Electorate
  readonly #parts: CandidateParts
  readonly #candidates = new Map<string, Candidate>()
  readonly #complete: Later<Candidate>
  readonly #raise: Later<undefined>
  #isRaising = false
  #listener: Listener | undefined

  constructor({ name, engines, clock, numbers = new NumberClock() }: QuorumParts) {
    this.name = name
    this.#clock = clock
    const voters = engines.map(engine => new Voter(engine, clock))
    this.#electorate = new Electorate(voters, numbers, clock)
    this.#complete = new Later(clock, COMPLETE_AFTER, candidate => candidate.complete())
    this.#raise = new Later(clock, RAISE_AFTER, () => this.#raiseAll())
    this.#parts = {
      electorate: this.#electorate,
      wake: id => this.#listener?.wake(id),
      lost: id => this.#listener?.lost(id),
      elected: candidate => this.#elected(candidate),
      ended: ({ id }) => void this.#candidates.delete(id),
      unreachable: failures => this.#unreachable(failures),
      unclear: state => this.#unclear(state),
    }
  }

  async join(member: SessionInfo, listener: Listener): Promise<void> {
    const { voters } = this.#electorate
    const joined = voters.map((voter, index) => voter.join(member, this.#hearing(index)))
    try {
      // Whatever came of it, nothing was asked for yet.
      await this.#majorityOf(joined, ({ failures }) => this.#unreachable(failures))
    } catch (error) {
      await this.#leaveAll()
      throw error
    }
    this.#listener = listener
  }

  submit<O extends Operation>(operation: O): Promise<OutcomeOf<O>>
  submit(operation: Operation): Promise<unknown> {
    if (!this.#listener) return Promise.reject(new ClosedError('the box was closed', { engine: this.name }))
    switch (operation.type) {
      case 'enqueue':
        return this.#enqueue(operation)
      case 'extendOrYield':
        return this.#extendOrYield(operation)
      case 'poll':
        if (operation.read) return this.#keepsNoValues()
        return this.#candidates.get(operation.request.id)?.look(operation) ?? GONE
      case 'cancel':
        return this.#candidates.get(operation.request.id)?.cancel() ?? Promise.resolve()
      case 'renew':
        return this.#candidates.get(operation.request.id)?.renew(operation.number, operation.lease) ?? NO
      case 'release':
        return this.#candidates.get(operation.request.id)?.release(operation.number) ?? NO
      case 'downgrade':
        return this.#candidates.get(operation.request.id)?.downgrade(operation.number) ?? NO
      case 'expire':
        return this.#majorityOf(this.#askAll(operation)).then(() => undefined)
      case 'revoke':
        return this.#revoke(operation)
      case 'forceRelease':
        return this.#forceRelease(operation)
      case 'inspect':
        return this.#inspect(operation.prefix)
      case 'read':
      case 'commit':
      case 'watch':
      case 'unwatch':
        return this.#keepsNoValues()
    }
  }

  async leave(): Promise<void> {
    if (!this.#listener) return
    this.#listener = undefined
    await this.#leaveAll()
  }

  #enqueue(operation: Enqueue): Promise<RequestStatus> {
    if (operation.read) return this.#keepsNoValues()
    const known = this.#candidates.get(operation.request.id)
    if (known) return known.look(operation)
    const candidate = new Candidate(this.#parts, operation)
    this.#candidates.set(operation.request.id, candidate)
    return candidate.enter()
  }

  /** Each server is told of both in one call: whoever waits there comes first, and nobody slips in between. */
  async #extendOrYield({ request, number, next, lease, wait }: ExtendOrYield): Promise<RequestStatus> {
    const candidate = this.#candidates.get(request.id)
    if (candidate?.number !== number) return { state: 'gone' }
    const released = candidate.release(number)
    const entered = this.#enqueue({ type: 'enqueue', request: next, lease, wait })
    entered.catch(() => undefined)
    if (await released) return entered
    await this.#candidates.get(next.id)?.cancel()
    return { state: 'gone' }
  }

  /**
   * An operator's release of what `inspect` shows with this number, whatever number each server knows it by. It is looked
   * for until none has it, because one that gave no vote before may give it meanwhile.
   */
  async #forceRelease({ key, number }: ForceRelease): Promise<boolean> {
    let reports = await this.#reports('')
    const found = mergedReports(reports).find(
      report => report.key === key && report.phase === 'held' && report.number === number,
    )
    if (!found) return false
    for (const [index, all] of reports.entries()) {
      // One that says nothing is told all the same.
      if (!all)
        this.#electorate.voters[index]!.submit({ type: 'forceRelease', key, number }).catch(() => undefined)
    }
    let isFreed = false
    for (;;) {
      const votes = reports.map(all =>
        all?.find(report => report.id === found.id && report.key === key && report.phase === 'held'),
      )
      if (votes.every(vote => vote === undefined)) return isFreed
      isFreed = (await this.#freeVotes(key, votes)) || isFreed
      reports = await this.#reports('')
    }
  }

  /**
   * A server that is late takes what the session has by then, also what it was given since: so late ones are waited for,
   * until they count as out of reach.
   */
  async #revoke(operation: Revoke): Promise<number> {
    const { majority } = this.#electorate
    const decide = ({ answers, pending, over }: PollState<number>): readonly number[] | undefined =>
      answers.length >= majority && (over || pending === 0) ? answers : undefined
    return Math.max(...(await poll(this.#askAll(operation), this.#electorate, decide, this.#parts.unclear)))
  }

  #freeVotes(key: string, votes: readonly (IdentifiedReport | undefined)[]): Promise<boolean> {
    const freed = votes.flatMap((vote, index) =>
      vote
        ? [this.#electorate.voters[index]!.submit({ type: 'forceRelease', key, number: vote.number })]
        : [],
    )
    const enough = Math.min(this.#electorate.majority, freed.length)
    const decide = ({ answers }: PollState<boolean>): boolean | undefined =>
      answers.length >= enough ? answers.includes(true) : undefined
    return poll(freed, this.#electorate, decide, this.#parts.unclear)
  }

  async #inspect(prefix: string): Promise<readonly RequestReport[]> {
    const merged = mergedReports(await this.#reports(prefix))
    return merged.map(({ id: _, byServer: __, ...report }) => report)
  }

  /** What all servers tell that answer in time, if these are a majority. */
  async #reports(prefix: string): Promise<readonly (readonly IdentifiedReport[] | undefined)[]> {
    const { majority, voters } = this.#electorate
    const reports = new Array<readonly IdentifiedReport[] | undefined>(voters.length).fill(undefined)
    const asked = voters.map(async (voter, index) => {
      reports[index] = await voter.reports(prefix)
    })
    const decide = ({ answers, pending, overdue }: PollState<unknown>): true | undefined =>
      answers.length >= majority && (overdue || pending === 0) ? true : undefined
    await poll(asked, this.#electorate, decide, ({ failures }) => this.#unreachable(failures))
    return reports
  }

  #askAll<O extends Operation>(operation: O): Promise<OutcomeOf<O>>[] {
    return this.#electorate.voters.map(voter => voter.submit(operation))
  }

  /** Settles when a majority has answered. @param failed what to reject with when none can */
  #majorityOf<Answer>(
    asked: readonly Promise<Answer>[],
    failed: (state: PollState<Answer>) => Error = this.#parts.unclear,
  ): Promise<readonly Answer[]> {
    const decide = ({ answers }: PollState<Answer>): readonly Answer[] | undefined =>
      answers.length >= this.#electorate.majority ? answers : undefined
    return poll(asked, this.#electorate, decide, failed)
  }

  #hearing(index: number): Listener {
    const of = (id: string): Candidate | undefined => this.#candidates.get(id)
    return {
      wake: id => of(id)?.woken(index),
      lost: id => of(id)?.dropped(index),
      wanted: id => of(id)?.wanted(index),
      reserved: key => this.#listener?.reserved(key),
      changed: () => undefined,
      missed: () => undefined,
      ended: () => undefined,
    }
  }

  #elected(candidate: Candidate): void {
    this.#complete.add(candidate)
    if (this.#isRaising) return
    this.#isRaising = true
    this.#raise.add(undefined)
  }

  /** A server that had no vote in a grant may be the only one that keeps its data until the next one. */
  #raiseAll(): void {
    this.#isRaising = false
    const { voters } = this.#electorate
    const greatest = Math.max(...voters.map(voter => voter.greatest))
    for (const voter of voters) {
      if (!this.#listener || voter.greatest === greatest) continue
      voter.raise(greatest).then(
        () => {
          voter.greatest = Math.max(voter.greatest, greatest)
        },
        () => undefined,
      )
    }
  }

  async #leaveAll(): Promise<void> {
    await new Promise<void>(resolve => {
      const timer = this.#clock.after(LEAVE_WITHIN, resolve, true)
      void Promise.allSettled(this.#electorate.voters.map(voter => voter.leave())).then(() => {
        timer.cancel()
        resolve()
      })
    })
  }

  #keepsNoValues(): Promise<never> {
    return Promise.reject(
      new InvalidArgumentError(
        `${this.name} keeps locks and no values; open a box on one server (redis://) for the store, and check a grant's token there`,
        { engine: this.name },
      ),
    )
  }

  #unreachable(failures: readonly Error[]): SignalboxError {
    const refused = failures.find(failure => failure instanceof InvalidArgumentError)
    if (refused) return refused
    return new UnavailableError(this.#tooFew(failures), { engine: this.name, cause: failures[0] })
  }

  /** Nothing was done where every server says so; else it may have been done by some. */
  #unclear({ answers, failures, pending }: PollState<unknown>): SignalboxError {
    const isUndone = answers.length === 0 && pending === 0
    if (isUndone && failures.every(failure => failure instanceof UnavailableError)) {
      return this.#unreachable(failures)
    }
    return new IndeterminateError(this.#tooFew(failures), { engine: this.name, cause: failures[0] })
  }

  #tooFew(failures: readonly Error[]): string {
    const { majority, voters } = this.#electorate
    const reasons = [...new Set(failures.map(({ message }) => message))]
    return [
      `fewer than ${majority} of the ${voters.length} servers of ${this.name} answered`,
      ...(reasons.length > 0 ? [reasons.join('; ')] : []),
    ].join(': ')
  }
}

const GONE = Promise.resolve<RequestStatus>({ state: 'gone' })
const NO = Promise.resolve(false)
