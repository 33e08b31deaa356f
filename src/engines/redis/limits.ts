import { UnavailableError } from '../../base/errors.js'
import { ZoneDays } from '../../engine/limits/calendar-periods.js'
import { isSameCost } from '../../engine/limits/cost.js'
import { idOf, periodsOf, ruleOf, type WindowDefinition } from '../../engine/limits/definition.js'
import { keptLimit, keptLimiter, type KeptLimiter } from '../../engine/limits/report.js'
import type { ReservePermits, Reserved, Unit } from '../../engine/limits/reservation.js'
import type { PermitReservation } from '../../engine/contract.js'
import type { Reply } from './clients/connection.js'
import type { EngineParts } from './engine-parts.js'
import { sentAgain } from './sent-again.js'
import { limitCode, limitLookCode } from './lua/limit-code.js'
import { ServerCode } from './lua/server-code.js'

const DECISION = new ServerCode(limitCode())
const LOOK = new ServerCode(limitLookCode(), ['no-writes'])
/** Number of days, from yesterday, whose boundaries are sent to the server, which knows no time zones. */
const DAYS = 4
/** Maximum number that is sent, also instead of Infinity. */
const ENDLESS = 1e15

/** Reserves permits by code in Redis, with one call for each request, by the server's clock. */
export class RedisLimits {
  readonly #parts: EngineParts
  #calls = 0

  constructor(parts: EngineParts) {
    this.#parts = parts
  }

  /** Rejects as the link does, or if the limiter can't be read. */
  async reservePermits(request: ReservePermits): Promise<PermitReservation> {
    const { answer, earliest, latest } = await sentAgain(isAgain => {
      // Permits that the first call has reserved count as used. Permits must not be returned twice.
      const sent = isAgain ? { ...request, returns: [] } : request
      return this.#run(DECISION, request.limiter, limitArguments(++this.#calls, sent, Date.now()))
    })
    const reserved = reservedOf(answer, request)
    if (!reserved) {
      const { name } = this.#parts.link
      throw new UnavailableError(
        `the clocks of this process and of ${name} differ by a day or more; synchronize them`,
        { engine: name },
      )
    }
    return { reserved, earliest, latest }
  }

  /** Describes a limiter. Rejects as {@link reservePermits} does. @returns undefined when it has no effect. */
  async report(limiter: string): Promise<KeptLimiter | undefined> {
    const { answer } = await sentAgain(() => this.#run(LOOK, limiter, []))
    const [pausedFor, flat, waiting] = answer as readonly [
      string,
      readonly (string | number)[],
      readonly string[],
    ]
    const limits = []
    for (let index = 0; index < flat.length; index += 4) {
      const { definition } = ruleOf(String(flat[index]))
      const [used, resetIn, inForce] = [flat[index + 1]!, flat[index + 2]!, flat[index + 3]!].map(number)
      limits.push(keptLimit(definition, used!, resetIn!, inForce === 1))
    }
    return keptLimiter(limiter, number(pausedFor), limits, waiting)
  }

  async #run(
    code: ServerCode,
    limiter: string,
    args: readonly string[],
  ): Promise<{ readonly answer: Reply; readonly earliest: number; readonly latest: number }> {
    const { clock, code: calls, errors, names } = this.#parts
    const key = names.limit(limiter)
    const earliest = clock.now()
    try {
      const { reply } = await calls.call(key, code, ['1', key, ...args])
      return { answer: reply, earliest, latest: clock.now() }
    } catch (error) {
      throw errors.ofLimit(error, limiter)
    }
  }
}

/** The code's arguments. @param wall approximate milliseconds since 1970. */
export function limitArguments(call: number, request: ReservePermits, wall: number): string[] {
  const { session, windows, measures = [], units, returns, overdrawn, tenants = [] } = request
  const { horizon, hold, pause, explain } = request
  const amounts = (its: readonly number[] | undefined): string[] =>
    measures.map((_, index) => text(its?.[index] ?? 0))
  const args = [
    session,
    String(call),
    text(horizon),
    text(hold),
    pause === undefined ? '' : text(pause),
    text(explain?.n ?? 0),
    text(explain?.ahead ?? 0),
  ]
  args.push(String(windows.length))
  for (const window of windows) {
    const { kind, limit, per, hold: held, guard, timeZone, unit = '' } = window
    const days = daysOf(window, wall)
    args.push(idOf(window), kind, text(limit), text(per), text(held), text(guard), timeZone, unit)
    args.push(String(days.length), ...days.map(text))
  }
  args.push(String(measures.length), ...measures)
  for (const its of [overdrawn, explain?.amounts, explain?.amountsAhead]) args.push(...amounts(its))
  args.push(String(returns.length))
  for (const { n, at, from, amounts: its } of returns)
    args.push(text(n), text(at), text(from), ...amounts(its))
  args.push(String(tenants.length))
  for (const { name, weight } of tenants) args.push(name, String(weight))
  const runs = runsOf(units)
  args.push(String(runs.length))
  for (const [count, { n, more, within, amounts: its }] of runs)
    args.push(String(count), text(n), text(more), text(within), ...amounts(its))
  return args
}

/** Runs of equal units, with their lengths. */
function runsOf(units: readonly Unit[]): readonly (readonly [count: number, unit: Unit])[] {
  const runs: [number, Unit][] = []
  for (const unit of units) {
    const run = runs.at(-1)
    if (run && isSame(run[1], unit)) run[0]++
    else runs.push([1, unit])
  }
  return runs
}

function isSame(one: Unit, other: Unit): boolean {
  return one === other || (one.more === other.more && one.within === other.within && isSameCost(one, other))
}

/** Parses the answer; undefined if the server's time is outside of the days that were sent. */
export function reservedOf(answer: Reply, { windows, explain }: ReservePermits): Reserved | undefined {
  const [now, hold, pausedUntil, flat, explained, contenders = 0, fadesAt = 'inf', processes] =
    answer as readonly [
      string,
      string,
      string,
      readonly (string | number)[],
      readonly (string | number)[],
      (string | number)?,
      string?,
      (readonly number[])?,
    ]
  if (hold === 'days') return undefined
  const units = []
  for (let index = 0; index < flat.length; index += 3) {
    const unit = { n: Number(flat[index + 1]), at: number(flat[index + 2]!) }
    for (let left = Number(flat[index]); left > 0; left--) units.push(unit)
  }
  const binding = Number(explained[1]) - 1
  return {
    now: number(now),
    hold: number(hold),
    pausedUntil: number(pausedUntil),
    fadesAt: number(fadesAt),
    contenders: Number(contenders),
    processes,
    units,
    explained: explain && {
      ready: number(explained[0]!),
      binding: binding < 0 ? undefined : binding,
      reports: windows.map(({ limit, per, kind, unit }, index) => ({
        limit,
        per,
        window: kind,
        unit,
        remaining: Number(explained[2 + 2 * index]),
        resetIn: number(explained[3 + 2 * index]!),
      })),
    },
  }
}

const known = new Map<string, readonly number[]>()

/** When the days of a time zone begin, from yesterday on; empty for periods of equal length. */
function daysOf({ timeZone, per }: WindowDefinition, wall: number): readonly number[] {
  const periods = periodsOf(timeZone, per)
  if (!(periods instanceof ZoneDays)) return []
  const ready = known.get(timeZone)
  if (ready && wall >= ready[1]! && wall < ready[2]!) return ready
  const today = periods.at(wall)
  const days = [periods.at(today.start - 1).start, today.start, today.end]
  while (days.length < DAYS) days.push(periods.at(days.at(-1)!).end)
  known.set(timeZone, days)
  return days
}

function text(value: number): string {
  return String(Math.min(value, ENDLESS))
}

function number(reply: string | number): number {
  return reply === 'inf' ? Infinity : reply === '-inf' ? -Infinity : Number(reply)
}
