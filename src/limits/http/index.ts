export { limitFetch, type CallLimiter, type LimitFetchOptions } from './limit-fetch.js'
export { limitRequests, type Middleware } from './connect.js'
export { limitFastify, type FastifyHook, type FastifyRequestLike } from './fastify.js'
export type { KeyedRequestLimiter, RequestDecision, RequestLimiter, RequestOptions } from './request-limit.js'
