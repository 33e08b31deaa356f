import { expect, test } from 'vitest'
import { RedisReplyError, type Reply } from '../../../../src/engines/redis/clients/connection.js'
import { ConnectionLostError } from '../../../../src/engines/redis/clients/failures.js'
import type { Answered, RedisLink } from '../../../../src/engines/redis/clients/redis-link.js'
import { CodeCalls } from '../../../../src/engines/redis/code-calls.js'
import { ServerCode } from '../../../../src/engines/redis/lua/server-code.js'

const code = new ServerCode('return function() return 1 end')
const server = { epoch: 1 } as Answered['server']

const unknown = new RedisReplyError('ERR Function not found')
const forbidden = new RedisReplyError("NOPERM this user has no permissions to run the 'fcall' command")
const tooOld = new RedisReplyError("ERR unknown command 'FCALL', with args beginning with: ")
const full = new RedisReplyError("OOM command not allowed when used memory > 'maxmemory'.")

/** Returns calls on a server with these replies, in order, and the names of the sent commands. */
function start(...replies: (Reply | Error)[]): { sent: string[]; run: () => Promise<Reply> } {
  const sent: string[] = []
  const call = async (_: string, [name]: readonly string[]): Promise<Answered> => {
    sent.push(name!)
    const reply = replies.shift()!
    if (reply instanceof Error) throw reply
    return { reply, server, epoch: 1 }
  }
  const command: RedisLink['command'] = async (route, args) => (await call(route, args)).reply
  const calls = new CodeCalls({ call, command } as Partial<RedisLink> as RedisLink)
  return { sent, run: async () => (await calls.call('key', code, ['1', 'key'])).reply }
}

test('a server that does not know the function is sent it, together with the call', async () => {
  const { sent, run } = start(unknown, code.name, 1)
  const answered = run()
  await new Promise(setImmediate)
  expect(sent).toEqual(['FCALL', 'FUNCTION', 'FCALL'])
  expect(await answered).toBe(1)
})

test.each([
  { what: 'may not call functions', refusals: [forbidden], tried: ['FCALL'] },
  { what: 'has a server without functions', refusals: [tooOld], tried: ['FCALL'] },
  {
    what: 'may not load functions',
    refusals: [unknown, forbidden, unknown],
    tried: ['FCALL', 'FUNCTION', 'FCALL'],
  },
])('a login that $what uses a script from then on', async ({ refusals, tried }) => {
  const { sent, run } = start(...refusals, 1, 2)
  expect(await run()).toBe(1)
  expect(sent).toEqual([...tried, 'EVALSHA'])
  expect(await run()).toBe(2)
  expect(sent).toEqual([...tried, 'EVALSHA', 'EVALSHA'])
})

const unsaved = new RedisReplyError('MISCONF Redis is configured to save RDB snapshots, but it cannot.')
const alone = new RedisReplyError('NOREPLICAS Not enough good replicas to write.')

test.each([full, unsaved, alone])(
  'a server that refuses functions for now is sent the script: %s',
  async refusal => {
    const { sent, run } = start(refusal, 1, 2)
    expect(await run()).toBe(1)
    expect(await run()).toBe(2)
    expect(sent).toEqual(['FCALL', 'EVALSHA', 'FCALL'])
  },
)

test('a memory that is too full to load a function leaves the script for this call', async () => {
  const { sent, run } = start(unknown, full, unknown, 1, 2)
  expect(await run()).toBe(1)
  expect(sent).toEqual(['FCALL', 'FUNCTION', 'FCALL', 'EVALSHA'])
  expect(await run()).toBe(2)
  expect(sent.at(-1)).toBe('FCALL')
})

test.each([
  new RedisReplyError('NOPERM No permissions to access a key'),
  new RedisReplyError("READONLY You can't write against a read only replica."),
  new ConnectionLostError('lost the connection'),
])('another error rejects the call: %s', async error => {
  const { sent, run } = start(error)
  await expect(run()).rejects.toBe(error)
  expect(sent).toEqual(['FCALL'])
})
