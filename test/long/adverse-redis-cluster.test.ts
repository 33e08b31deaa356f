import { redisCluster } from '../contract/redis-cluster-fixture.js'
import { adverseSuite } from '../contract/suite.js'

adverseSuite(redisCluster)
