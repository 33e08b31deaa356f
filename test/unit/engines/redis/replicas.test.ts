import { expect, test } from 'vitest'
import type { CommandLine } from '../../../../src/engines/redis/clients/command-line.js'
import type { Reply } from '../../../../src/engines/redis/clients/command-line.js'
import type { Answered } from '../../../../src/engines/redis/clients/redis-link.js'
import { Replicas } from '../../../../src/engines/redis/replicas.js'

/** A line whose questions are answered by the test. */
class FakeLine implements CommandLine {
  epoch = 1
  readonly sent: string[] = []
  readonly answers: ((reached: number) => void)[] = []

  connect(): Promise<void> {
    return Promise.resolve()
  }

  send(...[command]: readonly (readonly string[])[]): Promise<Reply> {
    this.sent.push(command!.join(' '))
    return new Promise(resolve => this.answers.push(resolve))
  }

  close(): void {
    // Has nothing.
  }

  /** What has been answered over the line as it is now. */
  get answered(): Answered {
    return { reply: 1, line: this, epoch: this.epoch }
  }
}

const turn = (): Promise<void> => new Promise(setImmediate)

test('one question is under way at a time, and those who ask meanwhile share the next', async () => {
  const line = new FakeLine()
  const replicas = new Replicas(2)
  const first = replicas.missed(line.answered)
  await turn()
  const others = [replicas.missed(line.answered), replicas.missed(line.answered)]
  await turn()
  expect(line.sent).toEqual(['WAIT 2 1000'])
  line.answers[0]!(2)
  expect(await first).toBeUndefined()
  await turn()
  expect(line.sent).toEqual(['WAIT 2 1000', 'WAIT 2 1000'])
  line.answers[1]!(1)
  const missed = { why: 'only 1 of 2 replicas had it within 1000 ms' }
  expect(await Promise.all(others)).toEqual([missed, missed])
})

test('a server that is asked over another connection does not answer for what was written before', async () => {
  const line = new FakeLine()
  const replicas = new Replicas(1)
  const missed = replicas.missed(line.answered)
  await turn()
  line.epoch++
  line.answers[0]!(1)
  expect(await missed).toEqual({ why: 'the connection broke before it was known whether 1 replicas have it' })
  const next = replicas.missed(line.answered)
  await turn()
  line.answers[1]!(1)
  expect(await next).toBeUndefined()
})
