import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runProgram } from '../run-program.js'
import { startPostgres, type PostgresServer } from '../servers/postgres.js'
import { startRedis, type RedisServer } from '../servers/redis.js'
import { startHazelcast, type HazelcastServer } from '../servers/hazelcast.js'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'
import type { Block } from './blocks.js'
import { readAllBlocks, root } from './pages.js'
import { Clone, shellPrelude } from './shell-blocks.js'
import { compileBlocks, fileName, type CompiledBlock } from './typescript-blocks.js'

const timeLimit = 50_000
/** Output, foreign languages and schemata: there is nothing here that could run them. */
const onlyShown = new Set(['text', 'sql', 'java', 'python', 'go', 'lua', 'mermaid', 'http', 'xml'])

const checks: Readonly<Record<string, (block: Block) => Promise<void> | void>> = {
  ts: runTypeScript,
  js: runJavaScript,
  sh: runShell,
  bash: runShell,
  json: block => void JSON.parse(block.code),
}

/** Where a reader's server is; blocks run against one that is started here. */
const readersRedis = 'redis://localhost:6379'
const readersZooKeeper = 'localhost:2181'
const readersPostgres = 'postgres://localhost:5432/app'
const readersHazelcast = 'localhost:5701'

const blocks = readAllBlocks()
const checkedBlocks = blocks.filter(({ language }) => language in checks)
const output = join(root, 'build-docs', String(process.pid))
let compiled: Map<Block, CompiledBlock>
let clone: Clone
let redis: RedisServer
let zookeeper: ZooKeeperServer
let postgres: PostgresServer
let hazelcast: HazelcastServer

beforeAll(async () => {
  ;[redis, zookeeper, postgres, hazelcast] = await Promise.all([
    startRedis(),
    startZooKeeper(),
    startPostgres(),
    startHazelcast(),
  ])
  mkdirSync(output, { recursive: true })
  compiled = compileBlocks(
    blocks.filter(({ language }) => language === 'ts'),
    output,
  )
  clone = new Clone()
}, 120_000)

afterAll(async () => {
  await Promise.all([redis.stop(), zookeeper.kill(), postgres.kill(), hazelcast.kill()])
  clone[Symbol.dispose]()
  rmSync(output, { recursive: true, force: true })
})

test('every code block says a language that is checked or known not to be', () => {
  const unknown = blocks.filter(({ language }) => !(language in checks) && !onlyShown.has(language))
  expect(unknown.map(({ page, line, language }) => `${page}:${line} ${language}`)).toEqual([])
})

test.for(checkedBlocks.map(block => [`${block.page}:${block.line} ${block.language}`, block] as const))(
  '%s',
  ([, block]) => checks[block.language]!(block),
)

async function runTypeScript(block: Block): Promise<void> {
  const { problems, program } = compiled.get(block)!
  expect(problems).toEqual([])
  writeFileSync(program, onOurServer(readFileSync(program, 'utf8')))
  await runInEmptyFolder(program)
}

async function runJavaScript(block: Block): Promise<void> {
  const kind = /\brequire\(/.test(block.code) ? 'cjs' : 'mjs'
  const program = join(output, `${fileName(block)}.${kind}`)
  writeFileSync(program, onOurServer(block.code))
  await runInEmptyFolder(program)
}

async function runShell(block: Block): Promise<void> {
  await runProgram('bash', ['-c', shellPrelude + onOurServer(block.code)], { cwd: clone.path, timeLimit })
}

function onOurServer(code: string): string {
  return code
    .replaceAll(readersRedis, redis.url)
    .replaceAll(readersZooKeeper, zookeeper.address)
    .replaceAll(readersPostgres, postgres.url)
    .replaceAll(readersHazelcast, hazelcast.address)
}

async function runInEmptyFolder(program: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-docs-'))
  try {
    await runProgram(process.execPath, [program], { cwd: folder, timeLimit })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
