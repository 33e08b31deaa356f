import { redisCluster } from '../contract/redis-cluster-fixture.js'
import { contractSuite } from '../contract/suite.js'

contractSuite(redisCluster)
