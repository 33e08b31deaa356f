import type { IncomingMessage, ServerResponse } from 'node:http'
import { eventBytes, MAX_BACKLOG } from './page-kit/events.js'
import { lengthened, type Asked, type Routes } from './routes.js'

/** A request of Node, or of a framework on top of Node, which may have read the body. */
type NodeRequest = IncomingMessage & { readonly originalUrl?: string; readonly body?: unknown }

/** Answers a request of a server of Node. Never throws. */
export async function answerNode(
  routes: Routes,
  open: Set<() => void>,
  request: NodeRequest,
  response: ServerResponse,
): Promise<void> {
  response.on('error', () => undefined)
  const { status, headers, content } = await routes.answer(askedBy(request))
  // Another handler of the application may have replied meanwhile, for example after a timeout.
  if (response.headersSent) return
  response.writeHead(status, headers)
  if (typeof content === 'string') return void response.end(request.method === 'HEAD' ? '' : content)
  response.flushHeaders()
  if (response.destroyed) return
  // A pipelined request: its response has no socket yet, and does not close if the viewer disconnects.
  if (!response.socket) return void response.end()
  let leave = (): void => undefined
  const end = (): void => {
    leave()
    open.delete(end)
    response.end()
  }
  open.add(end)
  response.on('close', end)
  leave = content.join(message => {
    if (response.writableLength > MAX_BACKLOG) return end()
    response.write(eventBytes(message))
  })
  // `join` may have called `end` before it returned `leave`, if the first message exceeded the backlog.
  if (response.writableEnded) leave()
}

function askedBy(request: NodeRequest): Asked {
  const [path = '', query = ''] = (request.originalUrl ?? request.url ?? '').split(/\?(.*)/s)
  return {
    method: request.method ?? '',
    path,
    query: new URLSearchParams(query),
    header(name) {
      const value = request.headers[name]
      return Array.isArray(value) ? value.join(', ') : value
    },
    body: () => bodyOf(request),
  }
}

async function bodyOf(request: NodeRequest): Promise<string> {
  // A framework that has read the body stores its value.
  if (request.body !== undefined && request.readableEnded) return JSON.stringify(request.body)
  const parts: Buffer[] = []
  let length = 0
  try {
    // By default, the iterator destroys the request, which could then not be answered.
    for await (const part of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      length = lengthened(length, part.length)
      parts.push(part)
    }
  } finally {
    request.resume()
  }
  return Buffer.concat(parts).toString()
}
