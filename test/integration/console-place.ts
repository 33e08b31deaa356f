import { request, type IncomingHttpHeaders } from 'node:http'
import { text } from 'node:stream/consumers'
import { vi } from 'vitest'
import { PATIENCE, type CommandPlace, type Running } from './command-line.js'

/** A running `signalbox console`. */
export interface RunningConsole {
  readonly run: Running
  /** The address that it printed. */
  readonly address: string
  readonly port: number
  readonly secret: string
}

/** Starts `signalbox console`, and waits until it accepts requests. */
export async function startConsole(place: CommandPlace, ...args: readonly string[]): Promise<RunningConsole> {
  const run = place.start('console', ...args)
  const address = await vi.waitFor(() => /^open (\S+) /.exec(run.stdout)![1]!, PATIENCE)
  const { port, hash } = new URL(address)
  return { run, address, port: Number(port), secret: hash.replace('#secret=', '') }
}

/** A reply with its whole body. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Parts of a request. The header `Host` can have any value. */
export interface Question {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Sends a request to a server of this machine. */
export async function ask(port: number, path: string, question: Question = {}): Promise<Answer> {
  const { method = 'GET', headers = {}, body = '' } = question
  return new Promise((resolve, reject) => {
    const asking = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, response => {
      const { statusCode: status = 0, headers: found } = response
      text(response).then(content => resolve({ status, headers: found, body: content }), reject)
    })
    asking.on('error', reject)
    asking.end(body)
  })
}
