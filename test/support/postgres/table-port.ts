import { createHash } from 'node:crypto'
import pg from 'pg'
import type { Alive, Operation } from '../../../src/engine/contract.js'
import { Calls, serverCall } from '../../../src/engines/postgres/calls.js'
import { SqlError } from '../../../src/engines/postgres/clients/sql-client.js'
import { outcomeOf, reportsOf, type Json } from '../../../src/engines/postgres/outcomes.js'
import { sendSign } from '../../../src/engines/postgres/signs.js'
import { schemaText } from '../../../src/engines/postgres/schema.js'
import { statementsOf, type Statements } from '../../../src/engines/postgres/statements.js'
import type { ServerOperation } from '../../../src/engines/postgres/call-arguments.js'
import type { PostgresServer } from '../servers/postgres.js'
import type { Answered, Session, TablePort } from '../table-world.js'

/** How much later each operation is: milliseconds. Numbers come from the clock, and have to rise with each grant. */
const TICK = 0.01

/** After how many operations the size of rows is the least. */
const STEPS_OF_LARGE_ROWS = 20

/** What came of operations that were carried out by one call. */
interface Together {
  readonly outcomes: readonly unknown[]
  readonly told: readonly string[]
}

/** Ports of the lock table: each has a schema and a connection of its own, which serve one history after the other. */
export class PostgresTablePorts {
  readonly #server: PostgresServer
  readonly #free: PostgresTablePort[] = []
  readonly #all: PostgresTablePort[] = []

  constructor(server: PostgresServer) {
    this.#server = server
  }

  take(): PostgresTablePort {
    let port = this.#free.pop()
    if (!port) {
      const client = new pg.Client(this.#server.address)
      port = new PostgresTablePort(client, `s${this.#all.length}`, () => this.#free.push(port!))
      this.#all.push(port)
    }
    port.begin()
    return port
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map(port => port.close()))
  }
}

/**
 * The port of the lock table in a schema of its own, with a clock that the test sets. After some operations, short queues
 * have a tail, too, and rows have more requests than they would get.
 */
class PostgresTablePort implements TablePort {
  readonly coversBySigns = true
  readonly #client: pg.Client
  readonly #schema: string
  readonly #statements: Statements
  readonly #made: Promise<unknown>
  #calls = new Map<Session, Calls>()
  #cleared: Promise<unknown> = Promise.resolve()
  #ahead = 0
  #steps = 0

  constructor(
    client: pg.Client,
    schema: string,
    readonly end: () => void,
  ) {
    this.#client = client
    this.#schema = schema
    this.#statements = statementsOf(schema)
    this.#made = client.connect().then(() =>
      client.query(`
        ${schemaText(schema)}
        create table ${schema}.test_clock as select 0::float8 as at, 8 as size;
        create or replace function ${schema}.clock() returns float8 language sql volatile as
          'select c.at from ${schema}.test_clock c';
        create or replace function ${schema}.row_size() returns int language sql volatile as
          'select c.size from ${schema}.test_clock c'`),
    )
  }

  /** Begins a history with nothing. */
  begin(): void {
    const tables = ['keys', 'data', 'tails', 'recorded', 'watchers', 'signs'].map(
      table => `${this.#schema}.${table}`,
    )
    this.#calls = new Map()
    this.#ahead = 0
    this.#steps = 0
    this.#cleared = this.#made.then(() =>
      this.#client.query([...tables.map(table => `delete from ${table}`), this.#sizeOfRows(8)].join(';')),
    )
  }

  #sizeOfRows(size: number): string {
    return `update ${this.#schema}.test_clock set size = ${size}`
  }

  async decide(session: Session, operation: Operation, now: number): Promise<Answered> {
    await this.#cleared
    if (++this.#steps === STEPS_OF_LARGE_ROWS) await this.#client.query(this.#sizeOfRows(3))
    const { outcomes, told } =
      operation.type === 'alive'
        ? await this.#alive(session, operation, now)
        : await this.together(session, [operation], now)
    // A row that is not full has no tail, and the search in a tail begins before its first request.
    const wrong = await this.#query(
      `select count(*)::text from ${this.#schema}.tails t left join ${this.#schema}.data d on d.name = t.name
        where d.id is null or not ${this.#schema}.is_full(d.queue) or t.place <= ${this.#schema}.tail_after(d.queue)`,
      [],
    )
    if (wrong !== '0') throw new Error(`${String(wrong)} requests in tails cannot be found`)
    const inspected = await this.#query(this.#statements.inspect, ['lock/', 'false'])
    return { answer: outcomes[0], told, reports: reportsOf(JSON.parse(inspected as string) as Json) }
  }

  /** Carries out operations by one call. @param later how much later it is than at the last call. */
  async together(
    session: Session,
    operations: readonly Operation[],
    now: number,
    later = TICK,
  ): Promise<Together> {
    await this.#cleared
    await this.#client.query(`update ${this.#schema}.test_clock set at = ${now + (this.#ahead += later)}`)
    let calls = this.#calls.get(session)
    if (!calls) {
      calls = new Calls(this.#statements, () => ({ session, host: 'host', pid: 1, label: undefined }))
      this.#calls.set(session, calls)
    }
    const all = operations.map(operation => serverCall(operation as ServerOperation))
    const { answers, notices } = await calls.decide(all, (text, values) => this.#query(text, values))
    return {
      outcomes: all.map(({ operation }, index) => outcomeOf(operation, answers[index]!)),
      told: notices.flatMap(each => (each[0] === 'changed' ? [] : [`${each[0]} ${each[2]}`])),
    }
  }

  async #alive(session: Session, sign: Alive, now: number): Promise<Together> {
    await this.together(session, [], now)
    const told: string[] = []
    const outcome = await sendSign(
      sign,
      (text, values) => this.#query(text, values),
      this.#statements,
      async keys => {
        told.push(...(await this.together(session, [{ type: 'sweepExpired', keys }], now)).told)
      },
    )
    return { outcomes: [outcome], told }
  }

  /** Deletes what no longer has an effect. Returns the number of requests that are left in rows and tails. */
  async sweep(now: number): Promise<number> {
    await this.together('amy', [], now)
    await this.#client.query(`update ${this.#schema}.keys set due = 1`)
    await this.#client.query(`select ${this.#schema}.sweep(100, '{0,0}')`)
    const left = await this.#query(
      `select (select coalesce(sum(cardinality(d.queue)), 0) from ${this.#schema}.data d)
        + (select count(*) from ${this.#schema}.tails t)`,
      [],
    )
    return Number(left)
  }

  close(): Promise<void> {
    return this.#client.end()
  }

  async #query(text: string, values: readonly string[]): Promise<unknown> {
    try {
      const { rows } = await this.#client.query<unknown[]>({
        text,
        name: createHash('sha256').update(text).digest('hex').slice(0, 16),
        values: [...values],
        rowMode: 'array',
      })
      return rows[0]?.[0]
    } catch (error) {
      const { message, code } = error as Error & { readonly code?: string }
      throw new SqlError(message, code, false, error)
    }
  }
}
