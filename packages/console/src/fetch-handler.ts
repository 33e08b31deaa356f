import { eventBytes, MAX_BACKLOG } from './page-kit/events.js'
import { lengthened, type Asked, type Routes } from './routes.js'

/** Answers a request of a server that uses the types of the Fetch standard. Never throws. */
export async function answerFetch(
  routes: Routes,
  open: Set<() => void>,
  request: Request,
): Promise<Response> {
  const { status, headers, content } = await routes.answer(askedBy(request))
  if (typeof content === 'string')
    return new Response(request.method === 'HEAD' || content === '' ? null : content, { status, headers })
  let end = (): void => undefined
  const events = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        let leave = (): void => undefined
        end = () => {
          leave()
          if (open.delete(end)) controller.close()
        }
        open.add(end)
        request.signal.addEventListener('abort', () => end())
        leave = content.join(message => {
          if ((controller.desiredSize ?? 0) <= 0) return end()
          controller.enqueue(eventBytes(message))
        })
        // `join` may have called `end` before it returned `leave`, if the first message exceeded the backlog.
        if (!open.has(end)) leave()
      },
      cancel() {
        open.delete(end)
        end()
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: MAX_BACKLOG }),
  )
  return new Response(events, { status, headers })
}

function askedBy(request: Request): Asked {
  const { pathname, searchParams, host } = new URL(request.url)
  return {
    method: request.method,
    path: pathname,
    query: searchParams,
    header: name => request.headers.get(name) ?? (name === 'host' ? host : undefined),
    async body() {
      const decoder = new TextDecoder()
      let text = ''
      let length = 0
      for await (const part of (request.body ?? []) as AsyncIterable<Uint8Array>) {
        length = lengthened(length, part.length)
        text += decoder.decode(part, { stream: true })
      }
      return text + decoder.decode()
    },
  }
}
