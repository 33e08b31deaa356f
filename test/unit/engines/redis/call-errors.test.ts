import { expect, test } from 'vitest'
import { CallErrors } from '../../../../src/engines/redis/call-errors.js'
import { RedisReplyError } from '../../../../src/engines/redis/clients/connection.js'
import { Names } from '../../../../src/engines/redis/names.js'

const errors = new CallErrors('redis://host', new Names('', false, () => []), 'a string')

const SHA = 'script: 8c3f2a, on @user_script:12.'

/** Error replies of servers to a whole call. */
const ANSWERS: readonly (readonly [code: 'UNAVAILABLE' | 'INDETERMINATE', answer: string])[] = [
  ['UNAVAILABLE', "READONLY You can't write against a read only replica."],
  ['UNAVAILABLE', "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."],
  ['UNAVAILABLE', 'LOADING Redis is loading the dataset in memory'],
  ['UNAVAILABLE', 'NOREPLICAS Not enough good replicas to write.'],
  ['UNAVAILABLE', 'CLUSTERDOWN The cluster is down'],
  ['UNAVAILABLE', 'CLUSTERDOWN Hash slot not served'],
  ['UNAVAILABLE', 'TRYAGAIN Multiple keys request during rehashing of slot'],
  ['UNAVAILABLE', 'MISCONF Redis is configured to save RDB snapshots, but it is unable to persist to disk.'],
  ['UNAVAILABLE', 'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.'],
  ['UNAVAILABLE', "OOM command not allowed when used memory > 'maxmemory'."],
  ['UNAVAILABLE', 'NOSCRIPT No matching script.'],
  ['UNAVAILABLE', 'NOAUTH Authentication required.'],
  ['UNAVAILABLE', 'DENIED Redis is running in protected mode'],
  ['UNAVAILABLE', 'ERR max number of clients reached'],
  ['UNAVAILABLE', "NOPERM User locks has no permissions to run the 'evalsha' command"],
  ['UNAVAILABLE', "ERR unknown command 'EVALSHA', with args beginning with: '8c3f' '3' 'a' "],
  ['INDETERMINATE', `ERR Unknown Redis command called from script ${SHA}`],
  ['INDETERMINATE', `ERR user_script:12: attempt to index a nil value ${SHA}`],
]

test.each(ANSWERS)('%s: %s', (code, answer) => {
  const error = errors.ofCall(new RedisReplyError(answer))
  expect(error).toMatchObject({ code, message: expect.stringContaining(answer) as string })
})

test('a command that the server does not know is named with what the box needs', () => {
  const error = errors.ofCall(
    new RedisReplyError("ERR unknown command 'EVALSHA', with args beginning with: "),
  )
  expect(error.message).toMatch(
    /unknown command 'EVALSHA'.*allow the commands FCALL and FUNCTION LOAD, or EVALSHA and EVAL,/,
  )
})
