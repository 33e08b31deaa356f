import type { Awaitable } from '../engine/contract.js'
import { InvalidArgumentError, shown } from '../base/errors.js'
import { boxStatement, type CallersTransaction } from './box-statement.js'

/** Answers a statement of the code under test: returns its rows, or throws the error of the server. */
export type TestAnswer = (text: string, values: readonly unknown[]) => Awaitable<readonly unknown[]>

/** The rows of a statement, as a client of `pg` returns them. */
export interface TestResult {
  readonly rows: readonly unknown[]
  readonly rowCount: number
}

interface OpenTransaction extends CallersTransaction {
  /** Whether a statement in it has failed. Then it can only be rolled back. */
  isAborted: boolean
  readonly onEnd: ((isCommitted: boolean) => void)[]
}

/** White space and comments before a statement. Block comments in block comments are not recognized. */
const BEFORE = /^(?:\s|--[^\n]*(?:\n|$)|\/\*[^]*?\*\/)*/
const BEGIN = /^(?:begin|start\s+transaction)\b/i
const COMMIT = /^(?:commit|end)\b/i
const ROLLBACK = /^(?:rollback|abort)\b/i
const UNKNOWN =
  /^(?:savepoint|release|prepare\s+transaction|(?:rollback|abort|commit|end)\b.*\b(?:to|prepared|chain))\b/is

/**
 * Stands for a client of `pg`, without a server: knows `begin`, `commit` and `rollback`, and asks the test for the
 * answers to other statements. A test box binds grants and writes values in its transaction, as PostgreSQL does. A
 * statement that fails aborts the transaction. Savepoints and prepared transactions are rejected.
 *
 * ```ts
 * const client = new TestClient(text => (text.startsWith('select') ? [{ paid: false }] : []))
 * await client.query('begin')
 * await grant.fence(client)
 * await box.store('invoices').transaction(['42'], tx => tx.put('42', 'paid'), { in: client })
 * await client.query('commit') // now the value is written, and others get the keys
 * ```
 */
export class TestClient {
  readonly #answer: TestAnswer
  #transaction: OpenTransaction | undefined
  /** Settles when the last statement is answered. */
  #last: Promise<unknown> = Promise.resolve()

  /**
   * @param answer answers the statements other than `begin`, `commit` and `rollback`; default: no rows.
   * @throws InvalidArgumentError
   */
  constructor(answer: TestAnswer = () => []) {
    if (typeof answer !== 'function')
      throw new InvalidArgumentError(`answer must be a function that returns rows, not ${shown(answer)}`)
    this.#answer = answer
  }

  /**
   * Executes a statement after all earlier ones. Rejects with the error of `answer`, and in an aborted transaction with
   * the code 25P02 of PostgreSQL.
   * @throws InvalidArgumentError for a savepoint or a prepared transaction
   */
  query(
    statement: string | { readonly text: string; readonly values?: readonly unknown[] },
    values?: readonly unknown[],
  ): Promise<TestResult> {
    const text = typeof statement === 'string' ? statement : statement.text
    const given = values ?? (typeof statement === 'string' ? undefined : statement.values) ?? []
    const answering = this.#last.then(async () => {
      const rows = await this.#execute(text, given)
      return { rows, rowCount: rows.length }
    })
    this.#last = answering.catch(() => undefined)
    return answering
  }

  async #execute(text: string, values: readonly unknown[]): Promise<readonly unknown[]> {
    const statement = text.replace(BEFORE, '')
    if (UNKNOWN.test(statement))
      throw new InvalidArgumentError(`a TestClient has only whole transactions; it can't do ${shown(text)}`)
    if (BEGIN.test(statement)) this.#transaction ??= { isAborted: false, onEnd: [] }
    else if (COMMIT.test(statement)) this.#end(this.#transaction?.isAborted === false)
    else if (ROLLBACK.test(statement)) this.#end(false)
    else return this.#answered(text, values)
    return []
  }

  async #answered(text: string, values: readonly unknown[]): Promise<readonly unknown[]> {
    const transaction = this.#transaction
    const ofBox = boxStatement(text, values)
    if (transaction?.isAborted)
      throw serverError(
        '25P02',
        'current transaction is aborted, commands ignored until end of transaction block',
      )
    if (ofBox && !transaction) throw serverError('25P01', 'there is no transaction in progress')
    try {
      return await (ofBox ? ofBox(transaction!) : this.#answer(text, values))
    } catch (error) {
      if (transaction) transaction.isAborted = true
      throw error
    }
  }

  #end(isCommitted: boolean): void {
    const onEnd = this.#transaction?.onEnd ?? []
    this.#transaction = undefined
    for (const end of onEnd) end(isCommitted)
  }
}

function serverError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}
