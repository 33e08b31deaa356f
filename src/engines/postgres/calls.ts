import type { SessionInfo } from '../../engine/contract.js'
import { argumentsOf, textOf, type CallArguments, type ServerOperation } from './call-arguments.js'
import { SqlError, type Query } from './clients/sql-client.js'
import type { Decided, Json } from './outcomes.js'
import type { Statements } from './statements.js'

/** Maximum number of times that a call is sent because the server undid it in favour of another transaction. */
const MAX_ATTEMPTS = 50
/**
 * SQLSTATE: the call needs further rows, which must be locked in order with the others. The detail names all of them.
 */
const NEEDS_ROWS = 'SB001'
/** Maximum time that the server waits for a row that another transaction has locked, in milliseconds. */
const ROW_TIMEOUT = 200

/** Options of a call. */
export interface CallOptions {
  /** Whether the call is part of the caller's transaction. */
  readonly isWithin?: boolean
  /** Maximum time that the server waits for a row that another transaction has locked, in milliseconds. */
  readonly rowTimeout?: number
  /** Whether the server also waits for values that another transaction has locked. */
  readonly waits?: boolean
  /** Whether the operations got the reply `again`. */
  readonly isRetry?: boolean
}

/** The replies to a call. */
interface CallResult {
  readonly answers: readonly Json[]
  readonly notices: Decided[1]
  /** Whether the server has notified the other sessions. */
  readonly isNotified: boolean
}

/** An operation and its arguments. */
export interface ServerCall {
  readonly operation: ServerOperation
  readonly args: CallArguments
}

/** Encodes an operation as arguments of the server's functions. */
export function serverCall(operation: ServerOperation): ServerCall {
  return { operation, args: argumentsOf(operation) }
}

/** Calls the functions of the schema that decide. */
export class Calls {
  readonly #statements: Statements
  readonly #own: () => SessionInfo
  /** The times up to which this box has deleted expired rows, see `sweep` of the schema. */
  #swept: readonly number[] = [0, 0]

  constructor(statements: Statements, own: () => SessionInfo) {
    this.#statements = statements
    this.#own = own
  }

  /**
   * Executes operations with one statement, and returns the replies in order. An operation with the reply `again` was
   * not executed, because another transaction had locked its row. Rejects with a SqlError if nothing was executed.
   */
  async decide(
    operations: readonly ServerCall[],
    query: Query,
    options: CallOptions = {},
  ): Promise<CallResult> {
    const order = orderOf(operations)
    const args = order.places.map(place => operations[place]!.args)
    const durable = operations.some(({ operation }) => operation.type === 'commit')
    const { isWithin = false, isRetry = false, waits = false, rowTimeout = ROW_TIMEOUT } = options
    const { decide, decideOne } = this.#statements
    const [first] = args
    // The caller's transaction binds its locks in another way, see `fence` of the schema.
    let locked = isWithin ? [] : order.locked
    for (let attempt = 1; ; attempt++) {
      try {
        const isFirst = attempt === 1 && !isWithin && !isRetry && !waits
        const sender = { ...this.#sender(), row_timeout: rowTimeout }
        const text =
          isFirst && args.length === 1 && first!.isSimple
            ? await query(decideOne.text, decideOne.values({ ...parametersOfOne(first!), ...sender }))
            : await query(
                decide.text,
                decide.values({
                  ...parametersOf(args),
                  ...sender,
                  durable,
                  within: isWithin,
                  waits,
                  locked,
                  steps: isFirst ? stepsOf(args) : args.map(() => 0),
                }),
              )
        const [sorted, notices, swept] = JSON.parse(text as string) as Decided
        if (swept) this.#swept = swept
        const answers: Json[] = []
        for (const [index, place] of order.places.entries()) answers[place] = sorted[index]!
        return { answers, notices, isNotified: !durable }
      } catch (error) {
        if (!(error instanceof SqlError) || attempt === MAX_ATTEMPTS || isWithin) throw error
        if (error.code === NEEDS_ROWS)
          locked = [...new Set([...args.flatMap(({ rows }) => rows), ...locked, ...neededIn(error)])]
        else if (!error.isUndone) throw error
      }
    }
  }

  /** The arguments that are the same for all calls of the box. */
  #sender() {
    const { session, host, pid, label } = this.#own()
    return { session, host: textOf(host), pid, label: textOf(label), swept: this.#swept }
  }
}

/** Returns the parameters of `decide_one` for an operation. */
function parametersOfOne(args: CallArguments) {
  const { kind, name, id, next, number, lease, ttl, heartbeat, label } = args
  return { kind, name, id, following: next, number, lease, ttl, heartbeat, its_label: label }
}

/** Returns the parameters of `decide` for several operations. */
function parametersOf(args: readonly CallArguments[]) {
  const claims = args.flatMap((each, index) => each.claims.map(claim => ({ ...claim, of: index + 1 })))
  const values = args.flatMap((each, index) => each.values.map(value => ({ ...value, of: index + 1 })))
  const marks = args.flatMap((each, index) => each.marks.map(mark => ({ mark, of: index + 1 })))
  return {
    kinds: args.map(({ kind }) => kind),
    names: args.map(({ name }) => name),
    ids: args.map(({ id }) => id),
    nexts: args.map(({ next }) => next),
    numbers: args.map(({ number }) => number),
    leases: args.map(({ lease }) => lease),
    ttls: args.map(({ ttl }) => ttl),
    heartbeats: args.map(({ heartbeat }) => heartbeat),
    labels: args.map(({ label }) => label),
    claim_of: claims.map(({ of }) => of),
    claim_names: claims.map(({ name }) => name),
    claim_modes: claims.map(({ mode }) => mode),
    claim_permits: claims.map(({ permits }) => permits),
    claim_maxima: claims.map(({ max }) => max),
    claim_keys: claims.map(({ key }) => key),
    value_of: values.map(({ of }) => of),
    value_roles: values.map(({ role }) => role),
    value_names: values.map(({ name }) => name),
    value_versions: values.map(({ version }) => version),
    contents: values.map(({ content }) => content),
    mark_of: marks.map(({ of }) => of),
    marks: marks.map(({ mark }) => mark),
  }
}

/**
 * Returns the step of each operation, see `decide` of the schema. An operation that shares a row with an earlier one
 * must be executed after it, so its step is later or 0. Reads come after all steps.
 */
function stepsOf(args: readonly CallArguments[]): number[] {
  const last = new Map<string, number>()
  return args.map(each => {
    const names = each.changed
    const isLater = names.every(name => (last.get(name) ?? 0) < each.step)
    const step = isLater ? each.step : 0
    for (const name of names) last.set(name, step === 0 ? Infinity : step)
    return step
  })
}

/**
 * Returns the order in which to execute operations, as their places, and the rows to lock first. Operations on one lock
 * each are executed in the order of their rows. Otherwise the order does not change, and all rows are locked first.
 */
function orderOf(operations: readonly ServerCall[]): {
  places: readonly number[]
  locked: readonly string[]
} {
  const places = operations.map((_, place) => place)
  const rows = new Set(operations.flatMap(({ args }) => args.rows))
  if (rows.size <= 1) return { places, locked: [] }
  const areNarrow = operations.every(
    ({ operation, args }) => args.rows.length === 1 && operation.type !== 'commit',
  )
  if (!areNarrow) return { places, locked: [...rows] }
  // The server orders names by their bytes. Strings are compared by UTF-16 units, and surrogates come before U+E000.
  const names = operations.map(({ args }) => Buffer.from(args.name))
  places.sort((a, b) => Buffer.compare(names[a]!, names[b]!) || a - b)
  return { places, locked: [] }
}

function neededIn({ cause }: SqlError): readonly string[] {
  const { detail } = cause as { readonly detail?: unknown }
  return typeof detail === 'string' ? (JSON.parse(detail) as readonly string[]) : []
}
