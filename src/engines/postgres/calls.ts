import type { SessionInfo } from '../../engine/contract.js'
import { arrayText, SqlError, type Query } from './clients/sql-client.js'
import type { Decided, Json } from './outcomes.js'
import type { Statements } from './statements.js'
import { isDurable, textOf, wordsOf, type ServerOperation, type Words } from './words.js'

/** How often a call is sent again that the server undid because of another transaction. */
const MOST_ATTEMPTS = 50
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
  #swept: Decided[2] = [0, 0]

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
    let { locked } = order
    for (let attempt = 1; ; attempt++) {
      try {
        const values = this.#valuesOf(words, locked, durable, options)
        const [sorted, told, swept] = JSON.parse(
          (await query(this.#statements.decide, values)) as string,
        ) as Decided
        this.#swept = swept
        const answers: Json[] = []
        for (const [index, place] of order.places.entries()) answers[place] = sorted[index]!
        return { answers, told, isNotified: !durable }
      } catch (error) {
        if (!(error instanceof SqlError) || attempt === MOST_ATTEMPTS || options.isWithin) throw error
        if (error.code === NEEDS_ROWS)
          locked = [...new Set([...words.flatMap(({ rows }) => rows), ...locked, ...neededIn(error)])]
        else if (!error.isUndone) throw error
      }
    }
  }

  #valuesOf(
    words: readonly Words[],
    locked: readonly string[],
    durable: boolean,
    { isWithin = false, patience = PATIENCE, waits = false, isAgain = false }: CallOptions,
  ): string[] {
    const { session, host, pid, label } = this.#own()
    const mores = words.some(({ more }) => more) ? words.map(({ more }) => more ?? null) : []
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
      arrayText(words.map(({ number }) => number)),
      arrayText(words.map(({ lease }) => lease)),
      arrayText(words.map(({ life }) => life)),
      arrayText(words.map(({ hear }) => hear)),
      arrayText(words.map(({ label: its }) => its)),
      JSON.stringify(mores),
      arrayText(this.#swept),
      String(!isAgain && isBatch(words)),
    ]
  }
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

/** Whether each operation is about another lock, and one exclusive claim without more. */
function isBatch(words: readonly Words[]): boolean {
  return (
    words.length > 2 &&
    words.every(({ kind, rows }) => kind > 0 && rows.length === 1) &&
    new Set(words.map(({ name }) => name)).size === words.length
  )
}

function neededIn({ cause }: SqlError): readonly string[] {
  const { detail } = cause as { readonly detail?: unknown }
  return typeof detail === 'string' ? (JSON.parse(detail) as readonly string[]) : []
}
