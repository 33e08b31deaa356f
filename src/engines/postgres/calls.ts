import type { SessionInfo } from '../../engine/contract.js'
import { arrayText, SqlError, type Query } from './clients/sql-client.js'
import type { Decided, Json } from './outcomes.js'
import type { Statements } from './statements.js'
import { isDurable, textOf, wordsOf, type ServerOperation, type Words } from './words.js'

/** How often a call is sent again that the server undid because of another transaction. */
const MAX_ATTEMPTS = 50
/** Rows are needed that have to be locked before. The error names them. */
const NEEDS_ROWS = 'SB001'
/** How long the server waits for a row that another transaction holds: milliseconds. */
const PATIENCE = 200

/** How a call is made. */
export interface CallOptions {
  /** Whether it is part of a transaction of the caller's. */
  readonly isWithin?: boolean
  /** How long the server waits for a row that a transaction elsewhere holds: milliseconds. */
  readonly patience?: number
  /** Whether it also waits for values that are held. */
  readonly waits?: boolean
  /** Whether operations of a batch are sent again. */
  readonly isAgain?: boolean
}

/** What came of a call. */
interface Answered {
  readonly answers: readonly Json[]
  readonly told: Decided[1]
  /** Whether the server has notified the other sessions. */
  readonly isNotified: boolean
}

/** An operation with its words. */
export interface Worded {
  readonly operation: ServerOperation
  readonly words: Words
}

/** An operation in the words of the server. */
export function worded(operation: ServerOperation): Worded {
  return { operation, words: wordsOf(operation) }
}

/** Calls of the function that decides. */
export class Calls {
  readonly #statements: Statements
  readonly #own: () => SessionInfo
  /** The times up to which this box has swept, see `sweep` of the schema. */
  #swept: readonly number[] = [0, 0]

  constructor(statements: Statements, own: () => SessionInfo) {
    this.#statements = statements
    this.#own = own
  }

  /**
   * Carries out operations by one statement, and gives their answers in order. An operation that is answered `again` was
   * not carried out, because other rows were locked by then. Rejects with a SqlError, when nothing was carried out.
   */
  async decide(operations: readonly Worded[], query: Query, options: CallOptions = {}): Promise<Answered> {
    const order = orderOf(operations)
    const words = order.places.map(place => operations[place]!.words)
    const durable = operations.some(({ operation }) => isDurable(operation))
    const { isWithin = false, isAgain = false, waits = false } = options
    const isOne = words.length === 1 && isSimple(words[0]!) && !isWithin
    let { locked } = order
    for (let attempt = 1; ; attempt++) {
      try {
        const isFirst = attempt === 1 && !isWithin && !isAgain && !waits
        const text =
          isFirst && isOne
            ? await query(this.#statements.decideOne, this.#valuesOfOne(words[0]!, options))
            : await query(
                this.#statements.decide,
                this.#valuesOf(
                  words,
                  locked,
                  durable,
                  isFirst ? stepsOf(words) : words.map(() => 0),
                  options,
                ),
              )
        const [sorted, told, swept] = JSON.parse(text as string) as Decided
        if (swept) this.#swept = swept
        const answers: Json[] = []
        for (const [index, place] of order.places.entries()) answers[place] = sorted[index]!
        return { answers, told, isNotified: !durable }
      } catch (error) {
        if (!(error instanceof SqlError) || attempt === MAX_ATTEMPTS || isWithin) throw error
        if (error.code === NEEDS_ROWS)
          locked = [...new Set([...words.flatMap(({ rows }) => rows), ...locked, ...neededIn(error)])]
        else if (!error.isUndone) throw error
      }
    }
  }

  #valuesOfOne(words: Words, { patience = PATIENCE }: CallOptions): string[] {
    const { session, host, pid, label } = this.#own()
    return [
      session,
      textOf(host),
      String(pid),
      textOf(label),
      String(patience),
      String(words.kind),
      words.name,
      words.id,
      words.next,
      String(words.number),
      String(words.lease),
      String(words.life),
      String(words.hear),
      words.label,
      arrayText(this.#swept),
    ]
  }

  #valuesOf(
    words: readonly Words[],
    locked: readonly string[],
    durable: boolean,
    steps: readonly number[],
    { isWithin = false, patience = PATIENCE, waits = false }: CallOptions,
  ): string[] {
    const { session, host, pid, label } = this.#own()
    const claims = words.flatMap((each, index) => each.claims.map(claim => ({ ...claim, of: index + 1 })))
    const values = words.flatMap((each, index) => each.values.map(value => ({ ...value, of: index + 1 })))
    const marks = words.flatMap((each, index) => each.marks.map(mark => ({ mark, of: index + 1 })))
    return [
      session,
      textOf(host),
      String(pid),
      textOf(label),
      String(durable),
      String(isWithin),
      String(patience),
      String(waits),
      arrayText(locked),
      arrayText(words.map(({ kind }) => kind)),
      arrayText(words.map(({ name }) => name)),
      arrayText(words.map(({ id }) => id)),
      arrayText(words.map(({ next }) => next)),
      arrayText(words.map(({ number }) => number)),
      arrayText(words.map(({ lease }) => lease)),
      arrayText(words.map(({ life }) => life)),
      arrayText(words.map(({ hear }) => hear)),
      arrayText(words.map(({ label: its }) => its)),
      arrayText(steps),
      arrayText(claims.map(({ of }) => of)),
      arrayText(claims.map(({ name }) => name)),
      arrayText(claims.map(({ mode }) => mode)),
      arrayText(claims.map(({ permits }) => permits)),
      arrayText(claims.map(({ most }) => most)),
      arrayText(claims.map(({ key }) => key)),
      arrayText(values.map(({ of }) => of)),
      arrayText(values.map(({ role }) => role)),
      arrayText(values.map(({ name }) => name)),
      arrayText(values.map(({ version }) => version)),
      arrayText(values.map(({ content }) => content)),
      arrayText(marks.map(({ of }) => of)),
      arrayText(marks.map(({ mark }) => mark)),
      arrayText(this.#swept),
    ]
  }
}

/** Whether an operation on one exclusive claim that reads nothing has a statement of its own. */
function isSimple({ kind, isNarrow, values, marks }: Words): boolean {
  return kind <= 5 && isNarrow && values.length === 0 && marks.length === 0
}

/**
 * The step of each operation, see `decide` of the schema. One that shares a row with an earlier operation comes after
 * that, so it has a later step or none. What is read is read after all steps.
 */
function stepsOf(words: readonly Words[]): number[] {
  const last = new Map<string, number>()
  return words.map(each => {
    const names = each.changed
    const isLater = names.every(name => (last.get(name) ?? 0) < each.step)
    const step = isLater ? each.step : 0
    for (const name of names) last.set(name, step === 0 ? Infinity : step)
    return step
  })
}

/**
 * The order in which operations are carried out, by their places, and the rows to lock before. Those on one lock each
 * are carried out in the order of their rows. All others keep their order, and their rows are locked first.
 */
function orderOf(operations: readonly Worded[]): { places: readonly number[]; locked: readonly string[] } {
  const places = operations.map((_, place) => place)
  const rows = new Set(operations.flatMap(({ words }) => words.rows))
  if (rows.size <= 1) return { places, locked: [] }
  const areNarrow = operations.every(
    ({ operation, words }) => words.rows.length === 1 && operation.type !== 'commit',
  )
  if (!areNarrow) return { places, locked: [...rows] }
  const nameAt = (place: number): string => operations[place]!.words.name
  places.sort((a, b) => (nameAt(a) < nameAt(b) ? -1 : nameAt(a) > nameAt(b) ? 1 : a - b))
  return { places, locked: [] }
}

function neededIn({ cause }: SqlError): readonly string[] {
  const { detail } = cause as { readonly detail?: unknown }
  return typeof detail === 'string' ? (JSON.parse(detail) as readonly string[]) : []
}
