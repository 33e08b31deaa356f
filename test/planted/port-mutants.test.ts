import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { luaMutants, sqlMutants } from './port-mutants.js'
import { schemaText } from '../../src/engines/postgres/schema.js'
import { PostgresTablePorts } from '../support/postgres/table-port.js'
import { RedisTablePort, WAYS } from '../support/redis/table-port.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'
import { startRedis, type RedisServer } from '../support/servers/redis.js'
import { compareHistories, type HistoryKind } from '../support/table-histories.js'
import { replay } from '../support/table-replay.js'
import { ALL_CLAIMS, searchTable, type Transition } from '../support/table-search.js'
import type { TablePort } from '../support/table-world.js'

/** Maximum number of histories until a mutant must be found. */
const HISTORIES = { redis: 400, postgres: 120 }
const TIMEOUT = 300_000

let redis: RedisServer
let postgres: PostgresServer

beforeAll(async () => {
  redis = await startRedis()
  postgres = await startPostgres()
})

afterAll(async () => {
  await redis.stop()
  await postgres.kill()
})

/** Returns the text with a mistake in it. The right part must occur exactly once, with any white space. */
function planted(text: string, right: string, wrong: string): string {
  const words = right
    .trim()
    .split(/\s+/)
    .map(word => word.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`))
  const places = [...text.matchAll(new RegExp(words.join(String.raw`\s+`), 'g'))]
  expect(places, right).toHaveLength(1)
  const [{ 0: found, index }] = places as [RegExpExecArray]
  return text.slice(0, index) + wrong + text.slice(index + found.length)
}

async function compare(
  portFor: (seed: number) => TablePort,
  histories: number,
  kind: HistoryKind | 'search',
  first = 1,
): Promise<void> {
  if (kind !== 'search') return compareHistories(portFor, first, histories, kind)
  const transitions: Transition[] = []
  searchTable({ claims: ALL_CLAIMS, requests: 3, maxDepth: 3 }, transition => transitions.push(transition))
  await replay(portFor, transitions)
}

/** Matches the start of a message about a difference. */
const FOUND = /^(seed \d+, step \d+:|{"type":)/

/** Matches the errors of a port that does not run. Such a port fails every comparison. */
const NO_PROGRAM =
  /to have a length|syntax error|unexpected|Error compiling|attempt to|does not exist|undefined (?:variable|global)/i

describe('in the code of Redis', () => {
  test.each(luaMutants)('a mutant is found ($kind): $description', { timeout: TIMEOUT }, async mutant => {
    const { right, wrong, way, kind, first } = mutant
    const ports = await RedisTablePort.over(redis, {
      ...WAYS[way],
      code: groupMin => planted(WAYS[way].code(groupMin), right, wrong),
    })
    const found = compare(ports, HISTORIES.redis, kind, first)
    await expect(found).rejects.toThrow(FOUND)
    await expect(found).rejects.not.toThrow(NO_PROGRAM)
  })
})

describe('in the functions of PostgreSQL', () => {
  test.each(sqlMutants)('a mutant is found ($kind): $description', { timeout: TIMEOUT }, async mutant => {
    const { right, wrong, way, kind, first } = mutant
    await using ports = new PostgresTablePorts(postgres, (text, schema) => {
      const its = (part: string): string => part.replaceAll('signalbox.', `"${schema}".`)
      return planted(text, its(right), its(wrong))
    })
    planted(schemaText('signalbox'), right, wrong)
    const found = compare(() => ports.take(way), HISTORIES.postgres, kind, first)
    await expect(found).rejects.toThrow(FOUND)
    await expect(found).rejects.not.toThrow(NO_PROGRAM)
  })
})
