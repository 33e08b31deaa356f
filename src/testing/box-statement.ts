import type { Awaitable, SqlTransaction } from '../engine/contract.js'
import { InvalidArgumentError } from '../base/errors.js'
import { callersTransaction } from '../engines/postgres/clients/callers-transaction.js'

/** A transaction of a TestClient, as a test box sees it. */
export interface CallersTransaction {
  readonly onEnd: ((isCommitted: boolean) => void)[]
}

/** The work that a box does by one statement in a transaction. */
type Work = (transaction: CallersTransaction) => Awaitable<void>

const STATEMENT = 'signalbox_test.execute'
/** The work of the statements that no client has received yet, by their parameter. */
const underway = new Map<unknown, Work>()
let statements = 0

/**
 * Does work in a transaction of a TestClient. Its statement reaches the client as on PostgreSQL, also through objects
 * that the code under test puts around the client.
 * @throws InvalidArgumentError if it is not a transaction of a TestClient; UnavailableError if the work or the
 * statement fails
 */
export async function executeIn(name: string, transaction: SqlTransaction, work: Work): Promise<void> {
  const query = callersTransaction(name, transaction)
  const id = String(++statements)
  underway.set(id, work)
  try {
    await query(`select ${STATEMENT}($1)`, [id])
  } catch (cause) {
    if (underway.has(id)) throw notReached(cause)
    throw cause
  }
  if (underway.delete(id)) throw notReached()
}

/**
 * Takes a statement of a box. Returns a function that executes it and returns its rows; undefined for other statements.
 */
export function boxStatement(
  text: string,
  values: readonly unknown[],
): ((transaction: CallersTransaction) => Promise<readonly unknown[]>) | undefined {
  const work = text.includes(STATEMENT) ? underway.get(values[0]) : undefined
  if (!work) return undefined
  underway.delete(values[0])
  return async transaction => {
    await work(transaction)
    return [{ execute: 'done' }]
  }
}

function notReached(cause?: unknown): InvalidArgumentError {
  return new InvalidArgumentError(
    'the transaction of a test is a TestClient, or an object whose query calls the query of one',
    { cause },
  )
}
